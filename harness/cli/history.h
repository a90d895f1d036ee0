// Allocation histories of users: Headroom's own traces and the formats of other programs.
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
  std::optional<std::vector<Placement>> placement;  // of a planning problem such as MiniMalloc's
};

// Reads a Headroom trace, a PyTorch memory snapshot, an RMM log, a MiniMalloc CSV or an STAlloc
// text; the first bytes tell the format. Throws InputError naming the file and the place in it.
History read_history(const std::filesystem::path& file);

// The formats in which a history can be written: "headroom", "pytorch", "rmm", "minimalloc",
// "stalloc".
const std::vector<std::string>& history_formats();

// Converts a history to another format. Throws the errors of read_history.
void convert_history(const std::filesystem::path& file, const std::filesystem::path& out,
                     const std::string& format);

}  // namespace headroom
