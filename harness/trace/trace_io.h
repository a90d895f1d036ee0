// Reads and writes whole traces as files. file/README.md describes the format; file/reader.h and
// writer.h read and write it as a stream.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/trace/placement.h"
#include "harness/trace/trace.h"

namespace headroom {

inline constexpr const char* kTraceExtension = ".hrtrace";

// Writes atomically: the file gets its name only when it is complete. Throws InputError when it
// cannot be created or writing fails (disk full).
void write_trace(const Trace& trace, const std::string& path);

// Throws InputError naming the file when it is missing, truncated, damaged, not a trace, or claims
// more events than a file of its length can be expected to hold.
Trace read_trace(const std::string& path);

// The file's constraints on the placement of its blocks; nullopt when it is not a planning problem.
// Throws as read_trace does.
std::optional<std::vector<Placement>> read_placement(const std::string& path);

// Decides by the file's first bytes.
bool is_trace(const std::string& path);

}  // namespace headroom
