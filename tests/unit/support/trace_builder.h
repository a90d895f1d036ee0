// Builds traces by hand, event by event, as a recorder would.
#pragma once

#include <map>

#include "harness/trace/trace.h"

namespace headroom {

class TraceBuilder {
 public:
  TraceBuilder() { trace_.header.capacity_bytes = kGiB; }

  TraceBuilder& step(std::int32_t number, Phase phase = Phase::forward) {
    step_ = number;
    phase_ = phase;
    return *this;
  }
  TraceBuilder& segment(std::uint32_t id, Address address, Bytes size, Bytes charged = 0) {
    return add(EventKind::segment_alloc, id, Role::activation, size, charged == 0 ? size : charged,
               address);
  }
  TraceBuilder& free_segment(std::uint32_t id) { return undo(EventKind::segment_free, id); }
  TraceBuilder& map(std::uint32_t reservation, Address address, Bytes size) {
    return add(EventKind::segment_map, reservation, Role::activation, size, size, address);
  }
  TraceBuilder& unmap(std::uint32_t reservation, Address address, Bytes size) {
    return add(EventKind::segment_unmap, reservation, Role::activation, size, size, address);
  }
  TraceBuilder& alloc(std::uint32_t id, Address address, Bytes requested, Bytes size = 0,
                      Role role = Role::activation) {
    return add(EventKind::alloc, id, role, requested, size == 0 ? requested : size, address);
  }
  TraceBuilder& free(std::uint32_t id) { return undo(EventKind::free, id); }
  TraceBuilder& event(const TraceEvent& event) {
    trace_.events.push_back(event);
    return *this;
  }

  Trace& trace() { return trace_; }

 private:
  TraceBuilder& add(EventKind kind, std::uint32_t id, Role role, Bytes requested, Bytes size,
                    Address address) {
    const bool is_block = kind == EventKind::alloc;
    TraceEvent event{kind, role, phase_, 0, id, kNoOp, step_, requested, size, address, 0};
    made_[{is_block, id}] = event;
    return this->event(event);
  }
  // Frees the block or segment as it was made, now.
  TraceBuilder& undo(EventKind kind, std::uint32_t id) {
    TraceEvent event = made_.at({kind == EventKind::free, id});
    event.kind = kind;
    event.step = step_;
    event.phase = phase_;
    return this->event(event);
  }

  Trace trace_;
  std::int32_t step_ = 0;
  Phase phase_ = Phase::initialize;
  std::map<std::pair<bool, std::uint32_t>, TraceEvent> made_;
};

}  // namespace headroom
