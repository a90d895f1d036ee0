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

// How many samples run at once if their configurations are like this one: as many as there are
// cores for frameworks on virtual cards, of which no times are taken.
int samples_at_once(const Cell& cell);

class SampleTimes {
 public:
  // `experiments` must outlive this.
  explicit SampleTimes(const std::vector<Experiment>& experiments);
  void add(std::size_t experiment, std::chrono::nanoseconds worked);
  // Seconds that so many further samples of the experiment take: an estimate until one was
  // measured.
  double next(std::size_t experiment, int samples) const;

 private:
  const std::vector<Experiment>& experiments_;
  std::vector<std::vector<double>> seconds_;  // of every sample, by experiment
};

}  // namespace headroom
