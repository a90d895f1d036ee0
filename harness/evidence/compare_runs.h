// Compares the exact metrics of two stored runs made one after the other. Noisy metrics are left
// out, because the machine drifts between runs.
#pragma once

#include <string>
#include <vector>

#include "harness/results/metric.h"
#include "harness/results/run_differences.h"
#include "harness/results/run_directory.h"

namespace headroom {

enum class CellOutcome { same, better, worse, changed, not_comparable };
std::string_view to_string(CellOutcome outcome);

struct MetricChange {
  const Metric* metric = nullptr;
  double before = 0;
  double after = 0;
  CellOutcome outcome = CellOutcome::same;  // better or worse if beyond the margin, else changed
};

// The changes in one configuration that both runs have.
struct CellChange {
  std::string experiment;
  std::string arm;
  CellOutcome outcome = CellOutcome::same;  // worse if any metric is
  std::vector<MetricChange> changes;        // largest first
  std::string sentence;                     // without full stop
};

struct RunChanges {
  std::vector<std::string> missing;  // cells that only the first run has: "experiment [arm]"
  std::vector<std::string> added;    // cells that only the second run has
  std::vector<RunDifference> environment;
  std::vector<CellChange> cells;  // cells of both runs, in the order of the second
  bool has_regression() const;
};

RunChanges compare_runs(const RecordedRun& first, const RecordedRun& second);

}  // namespace headroom
