#include "harness/trace/oom_explanation.h"

#include <algorithm>
#include <map>

#include "harness/base/error.h"

namespace headroom {
namespace {

struct Place {
  Address start = 0;
  Address end = 0;
  const TraceEvent* event = nullptr;
};

struct State {
  std::map<Address, Place> segments;
  std::map<Address, Place> blocks;
};

// Adjacent mapped pages of one reservation form one segment.
void map(std::map<Address, Place>& segments, const TraceEvent& event) {
  const auto belongs = [&](const auto& segment) { return segment.second.event->id == event.id; };
  Place place{event.address, event.address + event.requested, &event};
  if (const auto after = segments.find(place.end); after != segments.end() && belongs(*after)) {
    place.end = after->second.end;
    segments.erase(after);
  }
  const auto next = segments.lower_bound(place.start);
  if (next != segments.begin() && std::prev(next)->second.end == place.start &&
      belongs(*std::prev(next))) {
    std::prev(next)->second.end = place.end;
    return;
  }
  segments[place.start] = place;
}

void unmap(std::map<Address, Place>& segments, const TraceEvent& event) {
  const auto after = segments.upper_bound(event.address);
  if (after == segments.begin()) return;
  const auto segment = std::prev(after);
  const Place whole = segment->second;
  const Address end = event.address + event.requested;
  segments.erase(segment);
  if (whole.start < event.address)
    segments[whole.start] = {whole.start, event.address, whole.event};
  if (end < whole.end) segments[end] = {end, whole.end, whole.event};
}

State state_at_end(const Trace& trace) {
  State state;
  for (const TraceEvent& event : trace.events) {
    switch (event.kind) {
      case EventKind::alloc:
        state.blocks[event.address] = {event.address, event.address + event.size, &event};
        break;
      case EventKind::free:
        state.blocks.erase(event.address);
        break;
      case EventKind::segment_alloc:
        state.segments[event.address] = {event.address, event.address + event.requested, &event};
        break;
      case EventKind::segment_free:
        state.segments.erase(event.address);
        break;
      case EventKind::segment_map:
        map(state.segments, event);
        break;
      case EventKind::segment_unmap:
        unmap(state.segments, event);
        break;
      case EventKind::oom:
        break;
    }
  }
  return state;
}

struct Window {
  std::size_t first = 0;  // index of the window's first block
  std::size_t last = 0;   // one past the last block
  Bytes bytes = 0;
};

// Finds the `wanted` contiguous bytes of the segment whose overlapping blocks are smallest in
// total. It is enough to try windows that begin at the segment's start or at the end of a block,
// and the one that ends with the segment: any other window can be shifted to one of these without
// covering further blocks.
bool cheapest(const Place& segment, const std::vector<Place>& blocks, Bytes wanted, Window& best) {
  if (segment.end - segment.start < wanted) return false;
  Window window;
  for (std::size_t first = 0; first <= blocks.size(); ++first) {
    const Address start = first == 0 ? segment.start : blocks[first - 1].end;
    if (start + wanted > segment.end) break;
    if (window.last < first) {  // the previous block was outside the window
      window.last = first;
    } else if (first > 0) {
      window.bytes -= blocks[first - 1].end - blocks[first - 1].start;
    }
    window.first = first;
    for (; window.last < blocks.size() && blocks[window.last].start < start + wanted; ++window.last)
      window.bytes += blocks[window.last].end - blocks[window.last].start;
    if (first == 0 || window.bytes < best.bytes) best = window;
  }
  // The window at the end of the segment.
  Window tail{.first = blocks.size(), .last = blocks.size(), .bytes = 0};
  while (tail.first > 0 && blocks[tail.first - 1].end > segment.end - wanted) {
    --tail.first;
    tail.bytes += blocks[tail.first].end - blocks[tail.first].start;
  }
  if (tail.bytes < best.bytes) best = tail;
  return true;
}

}  // namespace

OomExplanation explain_oom(const Trace& trace) {
  if (trace.events.empty() || trace.events.back().kind != EventKind::oom)
    throw Error("a trace that does not end out of memory has nothing to explain");
  const State state = state_at_end(trace);
  OomExplanation result;
  result.requested_bytes = trace.events.back().requested;
  std::vector<Place> pins;
  bool found = false;
  for (const auto& [address, segment] : state.segments) {
    std::vector<Place> inside;
    Address hole = segment.start;
    for (auto block = state.blocks.lower_bound(segment.start);
         block != state.blocks.end() && block->first < segment.end; ++block) {
      inside.push_back(block->second);
      result.largest_hole_bytes = std::max(result.largest_hole_bytes, block->first - hole);
      hole = block->second.end;
      result.live_bytes += block->second.end - block->first;
    }
    result.largest_hole_bytes = std::max(result.largest_hole_bytes, segment.end - hole);
    result.reserved_bytes += segment.end - segment.start;
    Window window;
    if (!cheapest(segment, inside, result.requested_bytes, window)) continue;
    if (found && window.bytes >= result.pinned_bytes) continue;
    found = true;
    result.pinned_bytes = window.bytes;
    pins.assign(inside.begin() + static_cast<std::ptrdiff_t>(window.first),
                inside.begin() + static_cast<std::ptrdiff_t>(window.last));
  }
  result.free_bytes = result.reserved_bytes - result.live_bytes;
  std::stable_sort(pins.begin(), pins.end(), [](const Place& a, const Place& b) {
    return a.end - a.start > b.end - b.start;
  });
  for (const Place& pin : pins)
    result.pins.push_back(
        {.id = pin.event->id,
         .bytes = pin.end - pin.start,
         .role = pin.event->role,
         .phase = pin.event->phase,
         .step = pin.event->step,
         .op = pin.event->op < trace.op_names.size() ? trace.op_names[pin.event->op] : ""});
  return result;
}

}  // namespace headroom
