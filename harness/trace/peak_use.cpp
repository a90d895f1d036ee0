#include "harness/trace/peak_use.h"

#include <algorithm>
#include <unordered_map>

namespace headroom {
namespace {

struct Peaks {
  Bytes allocated = 0;
  std::size_t events = 0;  // number of events up to and including the one that reached the peak
  std::optional<Bytes> reserved;
};

Peaks peaks_of(const Trace& trace) {
  Peaks peaks;
  Bytes allocated = 0, reserved = 0, most_reserved = 0;
  bool segments_hold_all = true;
  std::unordered_map<std::uint32_t, Bytes> live;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.kind == EventKind::alloc) {
      live[event.id] = event.size;
      allocated += event.size;
    } else if (event.kind == EventKind::free) {
      const auto found = live.find(event.id);
      if (found == live.end()) continue;
      allocated -= found->second;
      live.erase(found);
    } else if (event.kind == EventKind::segment_alloc || event.kind == EventKind::segment_map) {
      reserved += event.size;
    } else if (event.kind == EventKind::segment_free || event.kind == EventKind::segment_unmap) {
      reserved -= std::min(reserved, event.size);
    }
    segments_hold_all = segments_hold_all && allocated <= reserved;
    most_reserved = std::max(most_reserved, reserved);
    if (allocated > peaks.allocated) {
      peaks.allocated = allocated;
      peaks.events = i + 1;
    }
  }
  if (segments_hold_all) peaks.reserved = most_reserved;
  return peaks;
}

}  // namespace

PeakUse use_at_peak(const Trace& trace) {
  const Peaks peaks = peaks_of(trace);
  PeakUse use{.allocated = peaks.allocated, .reserved = peaks.reserved, .by_role = {}, .by_op = {}};
  std::unordered_map<std::uint32_t, const TraceEvent*> live;
  for (std::size_t i = 0; i < peaks.events; ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.kind == EventKind::alloc) live[event.id] = &event;
    if (event.kind == EventKind::free) live.erase(event.id);
  }
  for (const auto& [id, event] : live) {
    use.by_role[std::string(to_string(event->role))] += event->size;
    use.by_op[event->op < trace.op_names.size() ? trace.op_names[event->op] : ""] += event->size;
  }
  if (use.by_role.size() < 2) use.by_role.clear();  // the history's program does not tell roles
  return use;
}

}  // namespace headroom
