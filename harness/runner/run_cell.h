// Runs one cell in the calling process.
#pragma once

#include <cstdint>
#include <string>

#include "harness/results/sample.h"

namespace headroom {

// Never throws OutOfMemory: the sample's status is oom instead. Writes no trace when `trace_path`
// is empty.
Sample run_cell(const Cell& cell, std::uint64_t seed, const std::string& trace_path);

}  // namespace headroom
