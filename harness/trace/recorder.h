// Appends trace events at a cost of a few nanoseconds each: no clock, formatting or allocation on
// the hot path. The executor sets the current op, phase and time once per op.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "harness/trace/trace.h"

namespace headroom {

class TraceRecorder {
 public:
  // Memory for `expected_events` is allocated and touched at once, so that recording causes no page
  // faults.
  explicit TraceRecorder(std::size_t expected_events);

  void enter_step(std::int32_t step) { step_ = step; }
  // Time since this recorder was created.
  std::uint64_t elapsed_ns() const {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                          std::chrono::steady_clock::now() - origin_)
                                          .count());
  }
  void enter_op(std::uint32_t op, Phase phase, std::uint64_t time_ns) {
    op_ = op;
    phase_ = phase;
    time_ns_ = time_ns;
  }

  void record(EventKind kind, std::uint32_t id, Role role, Bytes requested, Bytes size,
              Address address, std::uint8_t stream = 0) {
    trace_.events.push_back(
        {kind, role, phase_, stream, id, op_, step_, requested, size, address, time_ns_});
  }

  Trace& trace() { return trace_; }
  const Trace& trace() const { return trace_; }

 private:
  std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
  Trace trace_;
  std::uint32_t op_ = kNoOp;
  Phase phase_ = Phase::initialize;
  std::int32_t step_ = 0;
  std::uint64_t time_ns_ = 0;
};

}  // namespace headroom
