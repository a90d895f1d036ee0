// Merges the shards of one run: one plan, one seed, one program, one kind of machine.
#pragma once

#include <vector>

#include "harness/results/run_directory.h"

namespace headroom {

// Returns the merged run, without run_id and directory. It is marked interrupted if a shard is
// missing or did not finish. Throws InputError that says which runs differ in what, and what to do.
RunInfo merge_runs(const std::vector<RecordedRun>& shards);

// Returns the numbers of the missing shards.
std::vector<int> missing_shards(const RunInfo& merged);

}  // namespace headroom
