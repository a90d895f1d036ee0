// Measures how fast training is turned into a trace on meta, independent of the allocator.
// This dominates the time of a plan at the scale of published models.
#include <benchmark/benchmark.h>

#include "harness/memory/recording_allocator.h"
#include "harness/memory/unlimited_allocator.h"
#include "harness/whatif/training_requests.h"

namespace headroom {
namespace {

Cell paper_scale() {
  Cell cell;
  cell.workload = Spec::parse("bert(batch=32,sequence=512,size=large)");
  cell.rules = "dense";
  return cell;
}

void lowering(benchmark::State& state) {
  const Cell cell = paper_scale();
  for (auto _ : state)
    benchmark::DoNotOptimize(plan_training(*make_workload(cell.workload), cell, cell.rules));
}
BENCHMARK(lowering)->Name("training_trace/lowering")->Unit(benchmark::kMillisecond);

// A training step of BERT on meta, recorded; 24 layers are BERT-large. Items per second are events
// per second.
void step(benchmark::State& state) {
  Cell cell = paper_scale();
  cell.workload.set("layers", std::to_string(state.range(0)));
  const TrainingPlan plan = plan_training(*make_workload(cell.workload), cell, cell.rules);
  const auto meta = make_device(Spec("meta", {{"capacity", "1GiB"}}));
  TraceRecorder recorder(1 << 16);
  UnlimitedAllocator unlimited;
  RecordingAllocator recorded(unlimited, recorder);
  Trainer trainer(plan, *meta, recorded, recorder, nullptr, 0);
  std::int64_t count = 0;
  for (auto _ : state) {
    recorder.trace().events.clear();
    trainer.step();
    count += static_cast<std::int64_t>(recorder.trace().events.size());
  }
  state.SetItemsProcessed(count);
  state.counters["events"] = static_cast<double>(recorder.trace().events.size());
}
BENCHMARK(step)
    ->Name("training_trace/step/layers")
    ->Arg(12)
    ->Arg(24)
    ->Arg(48)
    ->Arg(96)
    ->Unit(benchmark::kMicrosecond);

// Measures recording together with the conversion into requests for replay.
void requests(benchmark::State& state) {
  const Cell cell = paper_scale();
  const TrainingPlan plan = plan_training(*make_workload(cell.workload), cell, cell.rules);
  constexpr int kSteps = 3;
  std::int64_t count = 0;
  for (auto _ : state)
    count += static_cast<std::int64_t>(training_requests(plan, kSteps).requests.size());
  state.SetItemsProcessed(count);
}
BENCHMARK(requests)->Name("training_trace/requests")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headroom
