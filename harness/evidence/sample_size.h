// How many pairs a run takes: a pilot large enough to decide at all, then one second stage whose
// size depends on the pilot's dispersion. The pilot's result plays no part, so nobody can continue
// until something is significant.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/evidence/evidence.h"
#include "harness/plan/experiment.h"

namespace headroom {

// A noisy comparison that a run is to decide.
struct PlannedComparison {
  std::string experiment;
  std::string baseline;
  std::string treatment;
  const Metric* metric = nullptr;
  Scale scale = Scale::log_ratio;
  double delta = 0;
};

// Lists the comparisons of the parts of these claims, of step times in the matrix, and of controls.
std::vector<PlannedComparison> planned_comparisons(const std::vector<Experiment>& experiments,
                                                   const std::vector<Claim>& claims);

// Counts the noisy comparisons that are corrected for each other: those of the parts of these
// claims, and the step times of the matrix for experiments of no claim. Experiments with too few
// pairs to decide anything do not count.
std::size_t count_verdicts(const std::vector<Experiment>& experiments,
                           const std::vector<Claim>& claims);

// Raises the pilots of noisy experiments to the pairs that `verdicts` comparisons need; with fewer,
// no confidence interval is finite. With a `cap`, which also limits the pilots, experiments may
// take a second stage (max_blocks).
void plan_stages(std::vector<Experiment>& experiments, std::size_t verdicts,
                 std::optional<int> cap);

struct SecondStage {
  std::size_t experiment = 0;
  int wanted = 0;  // pairs including the pilot, before the cap
  int blocks = 0;  // blocks to add
};
// Plans second stages for experiments whose pilot is complete. The result depends only on the
// pilot, not on later samples.
std::vector<SecondStage> second_stages(const std::vector<Experiment>& experiments,
                                       const std::vector<PlannedComparison>& comparisons,
                                       const std::vector<Sample>& samples);

}  // namespace headroom
