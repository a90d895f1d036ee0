// One cell, carried out in the process that asks.
#pragma once

#include <cstdint>
#include <string>

#include "harness/results/sample.h"

namespace headroom {

// Runs the cell in this process. Never throws OutOfMemory: that becomes status oom.
// `trace_path` empty: no trace is written.
Sample run_cell(const Cell& cell, std::uint64_t seed, const std::string& trace_path);

}  // namespace headroom
