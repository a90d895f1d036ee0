#include "harness/trace/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/trace/holes.h"
#include "harness/trace/quiet_steps.h"

namespace headroom {
namespace {

class Bookkeeper {
 public:
  Bookkeeper(const Trace& trace, int warmup_steps) : trace_(trace), warmup_(warmup_steps) {}

  // Runs to the end of step `steps` or of the last step with an event, whichever is later.
  Ledger run(int steps) {
    for (index_ = 0; index_ < trace_.events.size(); ++index_) {
      const TraceEvent& event = trace_.events[index_];
      if (event.step < step_) fail("goes back to an earlier step");
      while (step_ < event.step) finish_step();
      observe(event);  // the level before the event counts for its phase and step, too
      if (event.kind != EventKind::alloc) measure_fragmentation();
      apply(event);
      check_sum();
      observe(event);
    }
    measure_fragmentation();
    while (step_ < steps) finish_step();
    if (step_ > 0) finish_step();
    const Bytes reserved_peak = ledger_.reserved.overall_peak;
    if (reserved_peak > 0)
      ledger_.utilisation =
          static_cast<double>(ledger_.allocated.overall_peak) / static_cast<double>(reserved_peak);
    return std::move(ledger_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    const TraceEvent& event = trace_.events[index_];
    throw Error(fmt::format(
        "trace is not sound: event {} ({}: {} {} at {:#x}, {} bytes) {}", index_,
        to_string(event.kind),
        event.kind == EventKind::alloc || event.kind == EventKind::free ? "block" : "segment",
        event.id, event.address, event.size, what));
  }

  void apply(const TraceEvent& event) {
    switch (event.kind) {
      case EventKind::alloc:
        if (event.requested > event.size) fail("is smaller than what was requested");
        if (!holes_.take(event.address, event.size)) fail("does not lie in free bytes");
        requested_ += event.requested;
        internal_ += event.size - event.requested;
        by_role_.at(static_cast<std::size_t>(event.role)) += event.requested;
        return;
      case EventKind::free:
        if (!holes_.give(event.address, event.size)) fail("frees bytes that are not in use");
        requested_ -= event.requested;
        internal_ -= event.size - event.requested;
        by_role_.at(static_cast<std::size_t>(event.role)) -= event.requested;
        return;
      case EventKind::segment_alloc:
        if (event.requested > event.size) fail("is charged less than it holds");
        if (!holes_.add_segment(event.address, event.requested)) fail("overlaps another");
        reserved_ += event.size;
        tails_ += event.size - event.requested;
        if (step_ > 0) ++device_allocations_;
        return;
      case EventKind::segment_free:
        if (!holes_.remove_segment(event.address)) fail("is freed while it is in use");
        reserved_ -= event.size;
        tails_ -= event.size - event.requested;
        if (step_ > 0) ++device_frees_;
        return;
      case EventKind::segment_map:
        if (!holes_.map(event.address, event.requested, event.id)) fail("overlaps another");
        reserved_ += event.size;
        if (step_ > 0) ++device_allocations_;
        return;
      case EventKind::segment_unmap:
        if (!holes_.unmap(event.address, event.requested, event.id))
          fail("unmaps pages that are in use or not mapped");
        reserved_ -= event.size;
        if (step_ > 0) ++device_frees_;
        return;
      case EventKind::oom:
        return;
    }
    fail("is of an unknown kind");
  }

  Bytes allocated() const { return requested_ + internal_; }

  // The last granule of a segment may extend beyond the requested size. This tail is usable by
  // nobody.
  void check_sum() const {
    if (requested_ + internal_ + holes_.total() + tails_ != reserved_)
      fail(fmt::format(
          "breaks requested {} + internal {} + free {} + segment tails {} = reserved {}",
          requested_, internal_, holes_.total(), tails_, reserved_));
  }

  void observe(const TraceEvent& event) {
    if (requested_ > ledger_.requested.overall_peak) ledger_.requested_at_peak = by_role_;
    if (allocated() > ledger_.allocated.overall_peak) at_new_peak_ = true;
    raise_overall();
    raise_step();
    if (step_ > warmup_ || step_ == 0) {
      PhasePeaks& peaks = ledger_.phase_peaks.at(static_cast<std::size_t>(event.phase));
      peaks.requested = std::max(peaks.requested, requested_);
      peaks.allocated = std::max(peaks.allocated, allocated());
      peaks.reserved = std::max(peaks.reserved, reserved_);
    }
  }

  // Measures the holes once, after the last of several allocations that each reached a new peak,
  // not after each allocation.
  void measure_fragmentation() {
    if (!at_new_peak_) return;
    at_new_peak_ = false;
    ledger_.internal_fragmentation =
        static_cast<double>(internal_) / static_cast<double>(allocated());
    ledger_.external_fragmentation =
        holes_.total() == 0
            ? 0.0
            : 1.0 - static_cast<double>(holes_.largest()) / static_cast<double>(holes_.total());
  }

  void raise_overall() {
    raise(ledger_.requested.overall_peak, ledger_.allocated.overall_peak,
          ledger_.reserved.overall_peak);
  }

  void raise_step() {
    if (step_ == 0) return;
    if (step_ <= warmup_)
      raise(ledger_.requested.warmup_peak, ledger_.allocated.warmup_peak,
            ledger_.reserved.warmup_peak);
    else
      raise(ledger_.requested.steady_peak, ledger_.allocated.steady_peak,
            ledger_.reserved.steady_peak);
  }

  void raise(Bytes& requested, Bytes& allocated_bytes, Bytes& reserved) const {
    requested = std::max(requested, requested_);
    allocated_bytes = std::max(allocated_bytes, allocated());
    reserved = std::max(reserved, reserved_);
  }

  void set(Bytes Moments::*moment) {
    ledger_.requested.*moment = requested_;
    ledger_.allocated.*moment = allocated();
    ledger_.reserved.*moment = reserved_;
  }

  // Ends step_ and starts the next one, whose initial level is what is held now. For a step without
  // events, that level is also its peak.
  void finish_step() {
    raise_step();
    if (step_ == 0) set(&Moments::initial);
    if (step_ == 1) set(&Moments::after_step_1);
    if (step_ > 0) {
      ledger_.device_allocations.push_back(device_allocations_);
      ledger_.device_frees.push_back(device_frees_);
      ledger_.allocated_after_step.push_back(allocated());
    }
    device_allocations_ = 0;
    device_frees_ = 0;
    ++step_;
  }

  const Trace& trace_;
  std::int32_t warmup_;
  std::size_t index_ = 0;
  std::int32_t step_ = 0;
  Ledger ledger_;
  Holes holes_;
  Bytes requested_ = 0;
  Bytes internal_ = 0;
  Bytes tails_ = 0;
  Bytes reserved_ = 0;
  bool at_new_peak_ = false;  // the fragmentation of this peak is not measured yet
  std::array<Bytes, kRoleCount> by_role_{};
  std::uint64_t device_allocations_ = 0;
  std::uint64_t device_frees_ = 0;
};

}  // namespace

Ledger make_ledger(const Trace& trace, int warmup_steps) {
  return Bookkeeper(trace, warmup_steps).run(0);
}

Ledger make_ledger_of(const Trace& trace, int warmup_steps, int steps) {
  return Bookkeeper(trace, warmup_steps).run(steps);
}

}  // namespace headroom
