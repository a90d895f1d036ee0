#include "harness/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace headroom {
namespace {

auto without_time(const TraceEvent& event) {
  return std::tie(event.kind, event.role, event.phase, event.stream, event.id, event.op, event.step,
                  event.requested, event.size, event.address);
}

std::string describe(const Trace& trace, std::size_t index) {
  if (index >= trace.events.size()) return "nothing more";
  const TraceEvent& event = trace.events[index];
  const std::string op = event.op == kNoOp                  ? "outside ops"
                         : event.op < trace.op_names.size() ? trace.op_names[event.op]
                                                            : fmt::format("op {}", event.op);
  return fmt::format("{} {} ({}) of {} in {} bytes at {:#x} in step {}, {}, {}, stream {}",
                     to_string(event.kind), event.id, to_string(event.role), event.requested,
                     event.size, event.address, event.step, to_string(event.phase), op,
                     event.stream);
}

}  // namespace

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::alloc:
      return "alloc";
    case EventKind::free:
      return "free";
    case EventKind::segment_alloc:
      return "segment_alloc";
    case EventKind::segment_free:
      return "segment_free";
    case EventKind::oom:
      return "oom";
    case EventKind::segment_map:
      return "segment_map";
    case EventKind::segment_unmap:
      return "segment_unmap";
  }
  return "?";
}

std::string first_difference(const Trace& a, const Trace& b) {
  const std::size_t count = std::max(a.events.size(), b.events.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (i < a.events.size() && i < b.events.size() &&
        without_time(a.events[i]) == without_time(b.events[i]))
      continue;
    return fmt::format("event {}: {}; but {}", i, describe(a, i), describe(b, i));
  }
  return "";
}

}  // namespace headroom
