// Allocation histories as users have them: Headroom's own traces, and what other programs write.
#pragma once

#include <filesystem>

#include "harness/memory/trace.h"

namespace headroom {

// Reads a Headroom trace, a PyTorch memory snapshot, an RMM log, a MiniMalloc CSV or an STAlloc
// text, told apart by their first bytes. Throws InputError naming file and place.
Trace read_history(const std::filesystem::path& file);

}  // namespace headroom
