// Converts events to the columns of a chunk and back.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/trace/trace.h"

namespace headroom::trace_file {

inline constexpr std::size_t kMaximumChunkEvents = 1 << 16;

// Names of the columns, in the order in which chunks are written.
const std::vector<std::string>& column_names();

// The layout of chunks according to the file's header.
struct Layout {
  std::vector<std::string> columns;  // columns not in column_names() are ignored
  std::vector<EventKind> kinds;      // the values that column "kind" indexes
  std::vector<Role> roles;
  std::vector<Phase> phases;
};

// Encodes 1 to kMaximumChunkEvents events.
void encode_chunk(std::span<const TraceEvent> events, std::string& content);

// Appends the chunk's events. Throws InputError naming the column at fault.
void decode_chunk(std::string_view content, const Layout& layout, std::vector<TraceEvent>& events);

}  // namespace headroom::trace_file
