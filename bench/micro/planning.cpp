// Measures how long the planner takes when all lifetimes are known, and how far its plan exceeds
// the peak of live bytes: for steps of GPT-3 175b at full size, and for random lifetimes. Every
// plan is validated.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>

#include "harness/planning/greedy.h"
#include "harness/whatif/training_requests.h"

namespace headroom {
namespace {

constexpr std::uint64_t kSeed = 20261121;

// Buffers of as many training steps as are needed for `count` of them.
std::vector<PlanBuffer> training_buffers(std::size_t count) {
  Cell cell;
  cell.workload = Spec::parse("gpt(preset=paper)");
  cell.optimizer = Spec("adam");
  cell.rules = "dense";
  const TrainingPlan plan = plan_training(*make_workload(cell.workload), cell, cell.rules);
  const std::size_t first = training_requests(plan, 1).blocks;
  const std::size_t second = training_requests(plan, 2).blocks - first;
  const std::size_t further = count <= first ? 0 : (count - first + second - 1) / second;
  return buffers_of(training_requests(plan, static_cast<int>(1 + further)), kBlockAlignment);
}

// Keeps 500 buffers alive at once, log-uniform from 256 B to 64 MiB, like the random load of the
// allocator benchmarks.
std::vector<PlanBuffer> random_buffers(std::size_t count) {
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> exponent(8, 26);
  std::exponential_distribution<double> lifetime(1.0 / 500);
  std::vector<PlanBuffer> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    const auto lower = static_cast<std::int64_t>(i);
    buffers.push_back(
        {.lower = lower,
         .upper = lower + 1 + static_cast<std::int64_t>(lifetime(random)),
         .size = align_up(static_cast<Bytes>(std::exp2(exponent(random))), kBlockAlignment),
         .alignment = kBlockAlignment});
  }
  return buffers;
}

void plan(benchmark::State& state, std::vector<PlanBuffer> (*make)(std::size_t)) {
  const std::vector<PlanBuffer> buffers = make(static_cast<std::size_t>(state.range(0)));
  Offsets offsets;
  for (auto _ : state) offsets = plan_greedily(buffers);
  const Bytes height = makespan(buffers, offsets);
  if (const auto wrong = plan_violations(buffers, offsets, height); !wrong.empty())
    state.SkipWithError(wrong.front().c_str());
  const auto bound = static_cast<double>(peak_live_bytes(buffers));
  state.counters["buffers"] = static_cast<double>(buffers.size());
  state.counters["percent_above_live"] = 100 * (static_cast<double>(height) / bound - 1);
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t count : {10'000, 100'000, 300'000}) benchmark->Arg(count);
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(plan, training, training_buffers)->Name("planning/training")->Apply(sizes);
BENCHMARK_CAPTURE(plan, random, random_buffers)->Name("planning/random")->Apply(sizes);

}  // namespace
}  // namespace headroom
