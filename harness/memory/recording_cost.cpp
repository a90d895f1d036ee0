#include "harness/memory/recording_cost.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "harness/base/duration.h"
#include "harness/memory/recording_allocator.h"
#include "harness/memory/unlimited_allocator.h"
#include "harness/trace/recorder.h"

namespace headroom {
namespace {

// Recording costs more than appending an event: it adds a virtual call, and a clock read per op.
// Here each op has two events.
double time_pairs_ns(Allocator& allocator, TraceRecorder* recorder, std::uint32_t pairs) {
  const auto start = Clock::now();
  for (std::uint32_t i = 0; i < pairs; ++i) {
    if (recorder != nullptr) recorder->enter_op(i, Phase::forward, recorder->elapsed_ns());
    allocator.deallocate(allocator.allocate(i + 1, {.role = Role::activation}));
  }
  return static_cast<double>(ns_since(start));
}

// Times the same requests on the cheapest possible allocator, with and without the recorder.
double measure_recording_ns() {
  constexpr std::uint32_t kPairs = 1 << 12;
  constexpr int kTries = 3;  // the fastest try counts, so that a hiccup is not taken for cost
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kTries; ++i) {
    UnlimitedAllocator nothing;
    TraceRecorder recorder(std::size_t{2} * kPairs);
    RecordingAllocator recorded(nothing, recorder);
    const double with = time_pairs_ns(recorded, &recorder, kPairs);
    const double without = time_pairs_ns(nothing, nullptr, kPairs);
    best = std::min(best, std::max(0.0, with - without) / (2.0 * kPairs));
  }
  return best;
}

}  // namespace

RecordingCost recording_cost(const Trace& trace, int warmup_steps, int steps) {
  RecordingCost cost{.ns_per_event = measure_recording_ns(),
                     .events = trace.events.size(),
                     .bytes = trace.events.capacity() * sizeof(TraceEvent)};
  for (const TraceEvent& event : trace.events)
    if (event.step > warmup_steps && event.step <= steps) ++cost.steady_events;
  return cost;
}

}  // namespace headroom
