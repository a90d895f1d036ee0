// Two stored runs, one after the other: what became of their exact metrics. Noisy ones are left
// out: between two runs the machine drifts.
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
  CellOutcome outcome = CellOutcome::same;  // better and worse beyond the margin, else changed
};

// One arm of one experiment, in both runs.
struct CellChange {
  std::string experiment;
  std::string arm;
  CellOutcome outcome = CellOutcome::same;  // worse where any metric is
  std::vector<MetricChange> changes;        // the largest first
  std::string sentence;                     // without its full stop
};

struct RunChanges {
  std::vector<std::string> missing;  // cells of the first run alone: "experiment [arm]"
  std::vector<std::string> added;    // of the second alone
  std::vector<RunDifference> environment;
  std::vector<CellChange> cells;  // of both, in the order of the second
  bool has_regression() const;
};

RunChanges compare_runs(const RecordedRun& first, const RecordedRun& second);

}  // namespace headroom
