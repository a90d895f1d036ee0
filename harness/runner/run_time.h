// How long a run takes: estimated before it begins, and from measured samples while it goes on.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "harness/plan/experiment.h"

namespace headroom {

struct RunTime {
  std::chrono::seconds planned, longest;  // with every second stage and every repeated block
};

// Estimated from the seconds per sample given in suites and claims, or a guess.
RunTime estimate(const std::vector<Experiment>& experiments);
// "4 min 05 s, or up to 6 min 10 s where timed blocks must be repeated".
std::string to_string(const RunTime& time);

class SampleTimes {
 public:
  // `experiments` must outlive this.
  explicit SampleTimes(const std::vector<Experiment>& experiments);
  void add(std::size_t experiment, std::chrono::nanoseconds worked);
  // Seconds that the experiment's next sample takes: an estimate until one was measured.
  double next(std::size_t experiment) const;

 private:
  const std::vector<Experiment>& experiments_;
  std::vector<std::vector<double>> seconds_;  // of every sample, by experiment
};

}  // namespace headroom
