// Executes a run: blocks in their order, one new process per sample. The configurations of a timed
// block take turns if they can (turns.h); every other sample is on disk before the next one begins.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "harness/evidence/sample_size.h"
#include "harness/results/run_directory.h"
#include "harness/runner/progress.h"

namespace headroom {

struct RunnerOptions {
  // No block but the first begins after this time.
  std::optional<std::chrono::milliseconds> budget;
  std::optional<int> max_pairs;                // per experiment, repeated blocks included
  std::vector<PlannedComparison> comparisons;  // decide the size of a second stage
};

struct RunOutcome {
  int out_of_memory = 0;  // configurations whose first sample ran out of memory: a result
  bool interrupted = false;
  bool out_of_budget = false;
  int recorded = 0;       // samples this call added
  int slow_blocks = 0;    // measured while the machine was slow, see block_table.h
  int repeat_blocks = 0;  // added to replace them
  int stage_blocks = 0;   // added because the pilots' dispersion asked for more pairs
};

// Runs the samples of `info.experiments` that are not in `recorded`. Keeps `info.best_probe_gflops`
// and `planned_samples` up to date; the caller writes `info`.
RunOutcome run_experiments(RunInfo& info, const std::vector<Sample>& recorded,
                           RunDirectory& directory, Progress& progress,
                           const RunnerOptions& options);

}  // namespace headroom
