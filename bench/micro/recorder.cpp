// Measures the overhead of recording one event: the instrument's own share of a step.
#include <benchmark/benchmark.h>

#include "harness/memory/recording_allocator.h"
#include "harness/memory/unlimited_allocator.h"

namespace headroom {
namespace {

constexpr std::size_t kEvents = 1 << 20;  // more than any cache holds

void recorder_record(benchmark::State& state) {
  TraceRecorder recorder(kEvents);
  std::uint32_t id = 0;
  for (auto _ : state) {
    if (recorder.trace().events.size() == kEvents) recorder.trace().events.clear();
    ++id;
    recorder.record(EventKind::alloc, id, Role::activation, 1000, 1024, Address{id} << 10);
  }
}
BENCHMARK(recorder_record)->Name("recorder/event");

// Two events per iteration, with the virtual calls that recording adds. Compare with
// recorder/unrecorded_pair: half of the difference is the cost of one event.
void recorded_pair(benchmark::State& state) {
  TraceRecorder recorder(kEvents);
  UnlimitedAllocator strategy;
  RecordingAllocator recording(strategy, recorder);
  Allocator* allocator = &recording;
  benchmark::DoNotOptimize(allocator);
  for (auto _ : state) {
    if (recorder.trace().events.size() == kEvents) recorder.trace().events.clear();
    allocator->deallocate(allocator->allocate(kKiB, {}));
  }
}
BENCHMARK(recorded_pair)->Name("recorder/recorded_pair");

void unrecorded_pair(benchmark::State& state) {
  UnlimitedAllocator strategy;
  Allocator* allocator = &strategy;
  benchmark::DoNotOptimize(allocator);
  for (auto _ : state) allocator->deallocate(allocator->allocate(kKiB, {}));
}
BENCHMARK(unrecorded_pair)->Name("recorder/unrecorded_pair");

}  // namespace
}  // namespace headroom
