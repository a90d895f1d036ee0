// The JSON texts of a trace file: its header, the names of ops and its end.
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

// Describes the layout that encode_chunk writes.
std::string header_text(const TraceHeader& header);
std::string names_text(std::span<const std::string> names);
std::string end_text(const FileEnd& end);

// Each function throws InputError for a malformed text; parse_header also for an unsupported
// version.
FileHeader parse_header(std::string_view text);
std::vector<std::string> parse_names(std::string_view text);
FileEnd parse_end(std::string_view text);

}  // namespace headroom::trace_file
