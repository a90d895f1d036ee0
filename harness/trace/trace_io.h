// Whole traces as files. file/README.md describes the format; file/reader.h and
// writer.h read and write it as a stream.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/trace/placement.h"
#include "harness/trace/trace.h"

namespace headroom {

inline constexpr const char* kTraceExtension = ".hrtrace";

// Complete or not there: the file gets its name when it is finished. Throws InputError when it
// cannot be made, DeviceError when the disk refuses (full).
void write_trace(const Trace& trace, const std::string& path);

// Throws InputError naming the file when it is missing, cut off, damaged, not a trace, or claims
// more events than a file of its length can be expected to hold.
Trace read_trace(const std::string& path);

// What the file asks of the places of its blocks; none where it is no planning problem. Throws as
// read_trace.
std::optional<std::vector<Placement>> read_placement(const std::string& path);

// By its first bytes.
bool is_trace(const std::string& path);

}  // namespace headroom
