// The texts of a trace file, JSON each: its header, the names of ops, and its end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/trace/file/chunk.h"
#include "harness/trace/placement.h"
#include "harness/trace/trace.h"

namespace headroom::trace_file {

struct FileHeader {
  TraceHeader trace;
  Layout layout;
  std::optional<std::vector<Placement>> placement;
};
struct FileEnd {
  std::uint64_t events = 0;
  std::uint64_t op_names = 0;
};

// With the layout that encode_chunk writes.
std::string header_text(const TraceHeader& header);
std::string names_text(std::span<const std::string> names);
std::string end_text(const FileEnd& end);

// Each throws InputError for a text that is not what it should be; the first also for a version
// that this program does not read.
FileHeader parse_header(std::string_view text);
std::vector<std::string> parse_names(std::string_view text);
FileEnd parse_end(std::string_view text);

}  // namespace headroom::trace_file
