// The matrix: the values of every configuration of every experiment, and how each compares with the
// experiment's first.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/evidence/evidence.h"
#include "harness/plan/experiment.h"
#include "harness/verdicts/judgement.h"

namespace headroom {

struct MatrixComparison {
  Finding finding;
  double delta = 0;
  std::optional<double> p_adjusted;  // Benjamini–Hochberg over the noisy comparisons of the matrix
  ChangeVerdict verdict = ChangeVerdict::inconclusive;
};

struct MatrixEntry {
  const Experiment* experiment = nullptr;
  const Arm* arm = nullptr;
  const Sample* example = nullptr;  // any sample; null if there is none
  std::string status;               // "ok", or the reason for having no result
  std::string reason;
  std::size_t samples = 0;
  std::map<std::string, double> values;  // medians by metric name
  // 95 % signed-rank intervals of the logarithm of the values, by metric name.
  std::map<std::string, std::optional<Interval>> intervals;
  std::string baseline_arm;  // "" for the baseline itself
  std::map<std::string, MatrixComparison> comparisons;
};

// Leaves out controls, which are about the instrument, and cells that do not train. Keeps pointers
// into `experiments` and into the samples of `table`.
std::vector<MatrixEntry> make_matrix(const std::vector<Experiment>& experiments,
                                     const SampleTable& table, Reliability reliability);

}  // namespace headroom
