// Writes a trace file as events come, a chunk at a time.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "harness/trace/file/blocks.h"
#include "harness/trace/file/header.h"

namespace headroom {

// Every function throws DeviceError when the stream refuses.
class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const TraceHeader& header);

  // Further ops, by index, ahead of the events that name them.
  void add_op_names(std::span<const std::string> names);
  void add(std::span<const TraceEvent> events);
  // A file without its end counts as cut off.
  void finish();

 private:
  void write_chunk();

  trace_file::BlockWriter blocks_;
  trace_file::FileEnd written_;
  std::vector<TraceEvent> pending_;
  std::string content_;
};

// All of a trace.
void write_trace(const Trace& trace, std::ostream& out);

}  // namespace headroom
