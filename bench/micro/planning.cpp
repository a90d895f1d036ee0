// Measures how long the planners take when all lifetimes are known, and how far their plans exceed
// the proven lower bound: for steps of GPT-3 175b at full size, for random lifetimes, and for
// problems with almost no room to spare. Every plan is validated.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "harness/planning/greedy.h"
#include "harness/planning/search.h"
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
  const auto bound = static_cast<double>(least_bytes(buffers));
  state.counters["buffers"] = static_cast<double>(buffers.size());
  state.counters["percent_above_bound"] = 100 * (static_cast<double>(height) / bound - 1);
}

// A problem of `count` buffers that certainly fits into kTight: the largest rectangle of time and
// memory is cut in two, again and again, and one part in twenty is left out.
constexpr Bytes kTight = kMiB;
std::vector<PlanBuffer> tight_buffers(std::size_t count, std::uint64_t seed) {
  struct Part {
    std::int64_t lower, upper;
    Bytes begin, end;
    double area() const {
      return static_cast<double>(upper - lower) * static_cast<double>(end - begin);
    }
  };
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> place(0.15, 0.85);
  std::vector<Part> parts = {{0, 1 << 20, 0, kTight}};
  const auto smaller = [](const Part& a, const Part& b) { return a.area() < b.area(); };
  while (parts.size() < count + count / 19) {
    std::pop_heap(parts.begin(), parts.end(), smaller);
    Part first = parts.back(), second = first;
    parts.pop_back();
    if (random() % 2 == 0) {
      first.upper = second.lower =
          first.lower +
          static_cast<std::int64_t>(place(random) * static_cast<double>(first.upper - first.lower));
    } else {
      first.end = second.begin =
          first.begin +
          static_cast<Bytes>(place(random) * static_cast<double>(first.end - first.begin));
    }
    for (const Part& part : {first, second}) {
      parts.push_back(part);
      std::push_heap(parts.begin(), parts.end(), smaller);
    }
  }
  std::shuffle(parts.begin(), parts.end(), random);
  parts.resize(count);
  std::vector<PlanBuffer> buffers;
  for (const Part& part : parts)
    buffers.push_back({.lower = part.lower, .upper = part.upper, .size = part.end - part.begin});
  return buffers;
}

// Ten problems in each iteration; each is given up after a second.
void search(benchmark::State& state) {
  constexpr int kProblems = 10;
  int solved = 0;
  for (auto _ : state) {
    solved = 0;
    for (std::uint64_t problem = 0; problem < kProblems; ++problem) {
      const std::vector<PlanBuffer> buffers =
          tight_buffers(static_cast<std::size_t>(state.range(0)), kSeed + problem);
      const PlanSearch found =
          search_plan(buffers, kTight, std::chrono::steady_clock::now() + std::chrono::seconds{1});
      if (found.outcome != PlanSearch::Outcome::found) continue;
      ++solved;
      if (const auto wrong = plan_violations(buffers, found.offsets, kTight); !wrong.empty())
        state.SkipWithError(wrong.front().c_str());
    }
  }
  state.counters["buffers"] = static_cast<double>(state.range(0));
  state.counters["solved_of_10"] = solved;
}
BENCHMARK(search)
    ->Name("planning/tight")
    ->Arg(50)
    ->Arg(100)
    ->Arg(200)
    ->Arg(400)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

void sizes(benchmark::internal::Benchmark* benchmark) {
  for (const std::int64_t count : {10'000, 30'000, 62'000, 300'000}) benchmark->Arg(count);
  benchmark->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(plan, training, training_buffers)->Name("planning/training")->Apply(sizes);
BENCHMARK_CAPTURE(plan, random, random_buffers)->Name("planning/random")->Apply(sizes);

}  // namespace
}  // namespace headroom
