#include "harness/trace/file/writer.h"

#include <algorithm>

namespace headroom {

using trace_file::BlockKind;
using trace_file::kMaximumChunkEvents;

TraceWriter::TraceWriter(std::ostream& out, const TraceHeader& header) : blocks_(out) {
  blocks_.write(BlockKind::header, trace_file::header_text(header));
}

void TraceWriter::add_op_names(std::span<const std::string> names) {
  if (names.empty()) return;
  blocks_.write(BlockKind::names, trace_file::names_text(names));
  written_.op_names += names.size();
}

void TraceWriter::add(std::span<const TraceEvent> events) {
  while (!events.empty()) {
    const std::size_t room = std::min(events.size(), kMaximumChunkEvents - pending_.size());
    pending_.insert(pending_.end(), events.begin(),
                    events.begin() + static_cast<std::ptrdiff_t>(room));
    events = events.subspan(room);
    if (pending_.size() == kMaximumChunkEvents) write_chunk();
  }
}

void TraceWriter::write_chunk() {
  trace_file::encode_chunk(pending_, content_);
  blocks_.write(BlockKind::chunk, content_);
  written_.events += pending_.size();
  pending_.clear();
}

void TraceWriter::finish() {
  if (!pending_.empty()) write_chunk();
  blocks_.write(BlockKind::end, trace_file::end_text(written_));
  blocks_.flush();
}

void write_trace(const Trace& trace, std::ostream& out) {
  TraceWriter writer(out, trace.header);
  writer.add_op_names(trace.op_names);
  writer.add(trace.events);
  writer.finish();
}

}  // namespace headroom
