// Writes a trace file as events arrive, one chunk at a time.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "harness/trace/file/blocks.h"
#include "harness/trace/file/header.h"

namespace headroom {

// Every function throws InputError when the stream fails.
class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const TraceHeader& header);

  // Appends op names. An op must be named before the events that refer to it.
  void add_op_names(std::span<const std::string> names);
  void add(std::span<const TraceEvent> events);
  // Writes the end of the file, without which readers treat it as truncated.
  void finish();

 private:
  void write_chunk();

  trace_file::BlockWriter blocks_;
  trace_file::FileEnd written_;
  std::vector<TraceEvent> pending_;
  std::string content_;
};

// Writes a complete trace.
void write_trace(const Trace& trace, std::ostream& out);

}  // namespace headroom
