// Shards of one run put together: one plan, one seed, one program, one kind of machine.
#pragma once

#include <vector>

#include "harness/results/run_directory.h"

namespace headroom {

// The run that all shards together are, without run_id and directory. A shard that is missing or
// did not finish leaves it interrupted. Throws InputError that says what differs between which
// runs, and what to do.
RunInfo merge_runs(const std::vector<RecordedRun>& shards);

// Numbers of the shards that are not there.
std::vector<int> missing_shards(const RunInfo& merged);

}  // namespace headroom
