// What one allocation and its release cost under each strategy, on meta: book-keeping only, no
// memory is touched. Every registered example takes part by name.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "bench/micro/benchmarks.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"

namespace headroom {
namespace {

std::unique_ptr<Device> make_device() {
  return Registry<DeviceKind>::instance().find("meta").create(
      Spec("meta", {{"capacity", "64GiB"}}));
}

constexpr std::uint64_t kSeed = 20240607;

// The figure to compare between the three benchmarks and with other allocators.
void report_pairs(benchmark::State& state, std::size_t pairs_per_iteration) {
  state.counters["s_per_pair"] = benchmark::Counter(
      static_cast<double>(pairs_per_iteration),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// The cache's best case: the block just given back is taken again.
void lifo(benchmark::State& state, const std::string& spec) {
  const auto device = make_device();
  const auto allocator = make_allocator(Spec::parse(spec), device->memory());
  for (auto _ : state) {
    const Block block = allocator->allocate(kKiB, {});
    benchmark::DoNotOptimize(block.address);
    allocator->deallocate(block);
  }
  report_pairs(state, 1);
}

// 500 live blocks of log-uniform size, one of them replaced at a time.
void random_500_live(benchmark::State& state, const std::string& spec) {
  constexpr std::size_t kLive = 500;
  constexpr std::size_t kRequests = 1 << 14;
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> exponent(8, 26);  // 256 B … 64 MiB
  std::uniform_int_distribution<std::size_t> slot(0, kLive - 1);
  struct Request {
    std::size_t slot;
    Bytes bytes;
  };
  std::vector<Request> requests(kRequests);
  for (Request& request : requests)
    request = {slot(random), static_cast<Bytes>(std::exp2(exponent(random)))};

  const auto device = make_device();
  const auto allocator = make_allocator(Spec::parse(spec), device->memory());
  std::vector<Block> live(kLive);
  for (std::size_t i = 0; i < kLive; ++i) live[i] = allocator->allocate(requests[i].bytes, {});
  std::size_t next = 0;
  for (auto _ : state) {
    const Request& request = requests[next++ % kRequests];
    allocator->deallocate(live[request.slot]);
    live[request.slot] = allocator->allocate(request.bytes, {});
  }
  report_pairs(state, 1);
  for (const Block& block : live) allocator->deallocate(block);
}

// Shaped like one training step of a 50-layer residual network at batch 8, made up rather than
// recorded: activations taken layer by layer and freed in reverse, beside each of them a scratch
// buffer, an activation gradient and a weight gradient; weights and momenta stay.
struct StepEvent {
  std::size_t slot;
  Bytes bytes;  // 0 = free
};

struct StepSequence {
  std::vector<Bytes> persistent;
  std::vector<StepEvent> events;
  std::size_t slots = 0;
  std::size_t pairs = 0;
};

StepSequence make_step() {
  constexpr int kLayers = 50;
  StepSequence step;
  const auto take = [&](Bytes bytes) {
    step.events.push_back({step.slots, bytes});
    ++step.pairs;
    return step.slots++;
  };
  const auto give = [&](std::size_t slot) { step.events.push_back({slot, 0}); };
  const auto activation = [](int layer) { return (Bytes{24} * kMiB) >> (layer / 14); };
  const auto weights = [](int layer) { return (Bytes{36} * kKiB) << (layer / 8); };
  std::vector<std::size_t> convolved;
  std::vector<std::size_t> normalised;
  std::vector<std::size_t> statistics;
  for (int layer = 0; layer < kLayers; ++layer) {
    step.persistent.push_back(weights(layer));
    step.persistent.push_back(weights(layer));
    const std::size_t scratch = take(activation(layer) / 3 + 1000);
    convolved.push_back(take(activation(layer)));
    give(scratch);
    statistics.push_back(take(Bytes{256} << (layer / 14)));
    normalised.push_back(take(activation(layer)));
  }
  std::size_t gradient = take(activation(kLayers - 1));
  std::vector<std::size_t> weight_gradients;
  for (int layer = kLayers - 1; layer >= 0; --layer) {
    const std::size_t of_normalised = take(activation(layer));
    give(gradient);
    give(normalised[layer]);
    weight_gradients.push_back(take(weights(layer)));
    const std::size_t scratch = take(activation(layer) / 2 + 5000);
    give(scratch);
    gradient = take(activation(std::max(layer - 1, 0)));
    give(of_normalised);
    give(convolved[layer]);
    give(statistics[layer]);
  }
  give(gradient);
  for (const std::size_t slot : weight_gradients) give(slot);
  return step;
}

void training_step(benchmark::State& state, const std::string& spec) {
  const StepSequence step = make_step();
  const auto device = make_device();
  const auto allocator = make_allocator(Spec::parse(spec), device->memory());
  std::vector<Block> persistent;
  for (const Bytes bytes : step.persistent) persistent.push_back(allocator->allocate(bytes, {}));
  std::vector<Block> live(step.slots);
  for (auto _ : state) {
    for (const StepEvent& event : step.events) {
      if (event.bytes == 0)
        allocator->deallocate(live[event.slot]);
      else
        live[event.slot] = allocator->allocate(event.bytes, {});
    }
  }
  report_pairs(state, step.pairs);
  for (const Block& block : persistent) allocator->deallocate(block);
}

}  // namespace

void register_allocator_benchmarks() {
  for (const auto& [name, strategy] : Registry<AllocatorStrategy>::instance().all()) {
    for (const std::string& spec : strategy.examples) {
      benchmark::RegisterBenchmark(("allocators/lifo_1KiB/" + spec).c_str(), lifo, spec);
      benchmark::RegisterBenchmark(("allocators/random_500_live/" + spec).c_str(), random_500_live,
                                   spec);
      benchmark::RegisterBenchmark(("allocators/training_step/" + spec).c_str(), training_step,
                                   spec);
    }
  }
}

}  // namespace headroom
