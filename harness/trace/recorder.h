// Appends trace events at a few nanoseconds each: no clock, no formatting, no allocation on the
// hot path. The executor states once per op where and when it is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "harness/trace/trace.h"

namespace headroom {

class TraceRecorder {
 public:
  // Room for `expected_events` is taken and touched at once, so that recording causes no fault.
  explicit TraceRecorder(std::size_t expected_events);

  void enter_step(std::int32_t step) { step_ = step; }
  // Since this recorder began.
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
