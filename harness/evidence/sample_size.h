// How many pairs a run takes: a pilot that is able to decide at all, then once as many more as its
// dispersion asks for. The estimate is never looked at, so that nobody goes on until something is
// significant.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/evidence/evidence.h"
#include "harness/plan/experiment.h"

namespace headroom {

// A noisy verdict that a run is to give.
struct PlannedComparison {
  std::string experiment;
  std::string baseline;
  std::string treatment;
  const Metric* metric = nullptr;
  Scale scale = Scale::log_ratio;
  double delta = 0;
};

// Of the parts of these claims, and of the step times in the matrix and of controls.
std::vector<PlannedComparison> planned_comparisons(const std::vector<Experiment>& experiments,
                                                   const std::vector<Claim>& claims);

// How many noisy comparisons will be held against each other: those of the parts of these claims,
// the step times of the matrix where an experiment is of none. Nothing of experiments that only
// run.
std::size_t count_verdicts(const std::vector<Experiment>& experiments,
                           const std::vector<Claim>& claims);

// Raises the pilots of noisy experiments to what so many verdicts need: with fewer pairs no
// interval has an end. With a `cap`, which bounds that too, they take a second stage (max_blocks).
void plan_stages(std::vector<Experiment>& experiments, std::size_t verdicts,
                 std::optional<int> cap);

struct SecondStage {
  std::size_t experiment = 0;
  int wanted = 0;  // pairs, pilot included, before the cap
  int blocks = 0;  // to add
};
// For experiments whose pilot is whole. The same for the same pilot, whatever came after it.
std::vector<SecondStage> second_stages(const std::vector<Experiment>& experiments,
                                       const std::vector<PlannedComparison>& comparisons,
                                       const std::vector<Sample>& samples);

}  // namespace headroom
