// Allocation histories as users have them: Headroom's own traces, and what other programs write.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/trace/placement.h"
#include "harness/trace/trace.h"

namespace headroom {

struct History {
  Trace trace;
  std::optional<std::vector<Placement>> placement;  // of a planning problem, as MiniMalloc's are
};

// Reads a Headroom trace, a PyTorch memory snapshot, an RMM log, a MiniMalloc CSV or an STAlloc
// text, told apart by their first bytes. Throws InputError naming file and place.
History read_history(const std::filesystem::path& file);

// What a history can be written as: "headroom", "pytorch", "rmm", "minimalloc", "stalloc".
const std::vector<std::string>& history_formats();

// Writes any of these as another. Throws as read_history.
void convert_history(const std::filesystem::path& file, const std::filesystem::path& out,
                     const std::string& format);

}  // namespace headroom
