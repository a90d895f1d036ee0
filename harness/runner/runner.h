// Executes a run: blocks in their order, one new process per sample. The arms of a timed block take
// turns where they can (turns.h); every other sample is on disk before the next one begins.
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
  std::optional<std::chrono::milliseconds>
      budget;                                  // no block but the first is started after this time
  std::optional<int> max_pairs;                // of an experiment, repeated blocks included
  std::vector<PlannedComparison> comparisons;  // a second stage is sized for these
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

struct RunTime {
  std::chrono::seconds planned, longest;  // with every second stage and every repeated block
};

// Estimated from the seconds per sample given in suites and claims, or a guess.
RunTime estimate(const std::vector<Experiment>& experiments);
// "4 min 05 s, or up to 6 min 10 s where timed blocks must be repeated".
std::string to_string(const RunTime& time);

}  // namespace headroom
