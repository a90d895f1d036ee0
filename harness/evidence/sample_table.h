// Samples arranged by experiment, configuration and block, and which of them were disturbed.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/results/run_info.h"
#include "harness/results/sample.h"

namespace headroom {

// A machine probe below this share of the run's best marks the neighbouring samples as disturbed.
inline constexpr double kDisturbedBelow = 0.8;

// A sample is crowded if its threads, summed, waited while other processes used the cores for more
// than this share of its steps. The probes around a sample miss that: with one of two cores busy
// throughout, steps took three to four times as long, threads waited for 73 to 81 % of them, and
// probes varied by 12 %.
inline constexpr double kCrowdedAbove = 0.1;
bool crowded(const Sample& sample);

// Returns the speed of the slower and of the faster probe beside the sample, in GFLOP/s. 0 for one
// that was not taken, and for both where a GPU computed the sample: the probes measure the
// machine's own processor.
std::pair<double, double> probes_of(const Sample& sample);

class SampleTable {
 public:
  using ByBlock = std::map<int, const Sample*>;

  // Keeps pointers into `samples`. If several samples have the same experiment, configuration and
  // block, the last one counts.
  explicit SampleTable(const std::vector<Sample>& samples,
                       const std::vector<Addition>& additions = {});

  const ByBlock& of(const std::string& experiment, const std::string& arm) const;
  double best_probe_gflops() const { return best_probe_; }
  bool disturbed(const Sample& sample) const;
  // How often blocks were added to an experiment because its result was inconclusive.
  int looks(const std::string& experiment) const;

 private:
  std::map<std::pair<std::string, std::string>, ByBlock> samples_;
  std::map<std::string, int> looks_;
  double best_probe_ = 0;
};

}  // namespace headroom
