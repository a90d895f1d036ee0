// Events as the columns of a chunk, and back.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/trace/trace.h"

namespace headroom::trace_file {

inline constexpr std::size_t kMaximumChunkEvents = 1 << 16;

// In the order in which chunks are written.
const std::vector<std::string>& column_names();

// What the file's header says about its chunks.
struct Layout {
  std::vector<std::string> columns;  // those beyond column_names() are passed over
  std::vector<EventKind> kinds;      // what the column "kind" indexes
  std::vector<Role> roles;
  std::vector<Phase> phases;
};

// Of 1 to kMaximumChunkEvents events.
void encode_chunk(std::span<const TraceEvent> events, std::string& content);

// Appends the chunk's events. Throws InputError naming the column.
void decode_chunk(std::string_view content, const Layout& layout, std::vector<TraceEvent>& events);

}  // namespace headroom::trace_file
