#include "harness/runner/run_time.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/device/traits.h"
#include "harness/evidence/block_table.h"
#include "harness/machine/probe.h"
#include "harness/runner/progress.h"
#include "harness/runner/sample_process.h"
#include "harness/stats/median.h"

namespace headroom {
namespace {

using Seconds = std::chrono::duration<double>;

double estimated_seconds(const Experiment& experiment) {
  const auto can_run = [](const Arm& arm) { return !unsupported_sample(arm.cell); };
  if (std::none_of(experiment.arms.begin(), experiment.arms.end(), can_run)) return 0;
  if (experiment.estimated_seconds > 0) return experiment.estimated_seconds;
  return is_exact(experiment) ? 1 : 5;
}

// How often the run waits for samples. Samples that run side by side count as one; the result is a
// fraction because they may belong to several blocks.
double rounds(const Experiment& experiment, int samples) {
  return static_cast<double>(samples) / samples_at_once(experiment.arms.front().cell);
}

}  // namespace

int samples_at_once(const Cell& cell) {
  return traits_of(cell.device).virtual_card ? usable_cores() : 1;
}

RunTime estimate(const std::vector<Experiment>& experiments) {
  double planned = 0, longest = 0;
  for (const Experiment& experiment : experiments) {
    const double block = estimated_seconds(experiment) *
                         rounds(experiment, static_cast<int>(experiment.arms.size()));
    const int blocks = std::max(experiment.blocks, experiment.max_blocks);
    planned += block * experiment.blocks;
    longest += block * (is_exact(experiment) ? blocks : with_all_repeats(blocks));
  }
  const auto rounded = [](double s) {
    return std::chrono::round<std::chrono::seconds>(Seconds(s));
  };
  return {.planned = rounded(planned), .longest = rounded(longest)};
}

std::string to_string(const RunTime& time) {
  const std::string planned = format_duration(time.planned);
  if (time.longest == time.planned) return planned;
  return fmt::format("{}, or up to {} where timed blocks must be repeated", planned,
                     format_duration(time.longest));
}

SampleTimes::SampleTimes(const std::vector<Experiment>& experiments)
    : experiments_(experiments), seconds_(experiments.size()) {}

void SampleTimes::add(std::size_t experiment, std::chrono::nanoseconds worked) {
  seconds_[experiment].push_back(Seconds(worked).count());
}

double SampleTimes::next(std::size_t experiment, int samples) const {
  // The median, because the first sample may generate its data set.
  const double one = seconds_[experiment].empty() ? estimated_seconds(experiments_[experiment])
                                                  : median_of(seconds_[experiment]);
  return one * rounds(experiments_[experiment], samples);
}

}  // namespace headroom
