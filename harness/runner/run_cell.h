// Runs one cell in the calling process.
#pragma once

#include <cstdint>
#include <string>

#include "harness/base/subprocess.h"
#include "harness/results/sample.h"

namespace headroom {

// Never throws OutOfMemory: the sample's status is oom instead. Writes no trace when `trace_path`
// is empty. The first turn lasts through warm-up, the last one until the end.
Sample run_cell(const Cell& cell, std::uint64_t seed, const std::string& trace_path,
                TurnTaker turns = TurnTaker());

}  // namespace headroom
