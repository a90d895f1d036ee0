// Carries out a run: blocks in their order, one fresh process per sample, every result on disk
// before the next begins.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "harness/evidence/sample_size.h"
#include "harness/results/run_directory.h"
#include "harness/runner/progress.h"

namespace headroom {

struct RunnerOptions {
  std::optional<std::chrono::milliseconds> budget;  // no block but the first is begun after this
  std::optional<int> max_pairs;                     // of an experiment, repeated blocks included
  std::vector<PlannedComparison> comparisons;       // what a second stage is sized for
};

struct RunOutcome {
  bool interrupted = false;
  bool out_of_budget = false;
  int recorded = 0;       // samples this call added
  int slow_blocks = 0;    // during which the machine was slow, see block_table.h
  int repeat_blocks = 0;  // added to replace them
  int stage_blocks = 0;   // added because the pilots' dispersion asked for more pairs
};

// Runs what `info.experiments` asks for and `recorded` does not answer yet. Keeps
// `info.best_probe_gflops` and `planned_samples` up to date; the caller writes `info`.
RunOutcome run_experiments(RunInfo& info, const std::vector<Sample>& recorded,
                           RunDirectory& directory, Progress& progress,
                           const RunnerOptions& options);

// How long all of it takes by what suites and claims say of a sample, or a guess: an estimate.
std::chrono::seconds estimate(const std::vector<Experiment>& experiments);

}  // namespace headroom
