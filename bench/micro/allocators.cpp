// Measures the cost of one allocation and its release under each strategy, on meta: only
// bookkeeping, no memory is touched. Every registered example is benchmarked by name, next to the
// mallocs installed on this machine.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bench/micro/benchmarks.h"
#include "bench/micro/peers.h"
#include "bench/micro/recorded_training.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"

namespace headroom {
namespace {

std::unique_ptr<Device> make_device() { return make_device(Spec("meta", {{"capacity", "1TiB"}})); }

// Runs a peer's malloc and free under the same loads.
class PeerAllocator final : public Allocator {
 public:
  explicit PeerAllocator(const PeerMalloc& peer) : peer_(peer) {}
  Block allocate(Bytes bytes, const AllocationHint&) override {
    auto* data = static_cast<std::byte*>(peer_.malloc(bytes));
    benchmark::DoNotOptimize(data);
    return {.requested = bytes, .size = bytes, .data = data};
  }
  void deallocate(const Block& block) override { peer_.free(block.data); }
  AllocatorStatistics statistics() const override { return {}; }

 private:
  const PeerMalloc& peer_;
};

std::unique_ptr<Allocator> make(const std::string& spec, DeviceMemory& memory) {
  for (const PeerMalloc& peer : peer_mallocs())
    if (spec == peer.name) return std::make_unique<PeerAllocator>(peer);
  return make_allocator(Spec::parse_composition(spec), memory);
}

constexpr std::uint64_t kSeed = 20240607;

// Reports the figure that is comparable between these benchmarks and with other allocators.
void report_pairs(benchmark::State& state, std::size_t pairs_per_iteration) {
  state.counters["s_per_pair"] = benchmark::Counter(
      static_cast<double>(pairs_per_iteration),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// The best case of a cache: each request takes the block that was just freed.
void lifo(benchmark::State& state, const std::string& spec) {
  const auto device = make_device();
  const auto allocator = make(spec, device->memory());
  for (auto _ : state) {
    const Block block = allocator->allocate(kKiB, {});
    benchmark::DoNotOptimize(block.address);
    allocator->deallocate(block);
  }
  report_pairs(state, 1);
}

// Keeps `count` live blocks of log-uniform size and replaces one of them at a time.
void random_live(benchmark::State& state, const std::string& spec, std::size_t count) {
  const std::size_t requests_count = std::max<std::size_t>(1 << 14, 4 * count);
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> exponent(8, 26);  // 256 B … 64 MiB
  std::uniform_int_distribution<std::size_t> slot(0, count - 1);
  struct Request {
    std::size_t slot;
    Bytes bytes;
  };
  std::vector<Request> requests(requests_count);
  for (Request& request : requests)
    request = {slot(random), static_cast<Bytes>(std::exp2(exponent(random)))};

  const auto device = make_device();
  const auto allocator = make(spec, device->memory());
  std::vector<Block> live(count);
  for (std::size_t i = 0; i < count; ++i) live[i] = allocator->allocate(requests[i].bytes, {});
  std::size_t next = 0;
  for (auto _ : state) {
    const Request& request = requests[next++ % requests.size()];
    allocator->deallocate(live[request.slot]);
    live[request.slot] = allocator->allocate(request.bytes, {});
  }
  report_pairs(state, 1);
  for (const Block& block : live) allocator->deallocate(block);
}

// Blocks allocated before the step stay live; the step frees every block that it allocates.
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

// One training step of ResNet-50 at batch 8, recorded on meta.
StepSequence read_step(const Trace& trace) {
  constexpr std::int32_t kStep = 2;  // the steady one
  StepSequence step;
  std::map<std::uint32_t, std::size_t> slots;  // blocks allocated in this step
  for (const TraceEvent& event : trace.events) {
    if (event.kind == EventKind::alloc && event.step == 0) {
      step.persistent.push_back(event.requested);
    } else if (event.kind == EventKind::alloc && event.step == kStep) {
      slots[event.id] = step.slots;
      step.events.push_back({step.slots++, event.requested});
      ++step.pairs;
    } else if (event.kind == EventKind::free && event.step == kStep && slots.contains(event.id)) {
      step.events.push_back({slots.at(event.id), 0});
      slots.erase(event.id);
    }
  }
  for (const auto& [id, slot] : slots) step.events.push_back({slot, 0});
  return step;
}

// RMM's own random load (benchmarks/random_allocations of rapidsai/rmm): 10,000 requests of uniform
// size up to 64 MiB; while fewer than 16,000 MiB are live, 73 of 100 turns allocate.
StepSequence make_rmm_load() {
  constexpr std::size_t kRequests = 10'000;
  constexpr Bytes kMost = 64 * kMiB;
  constexpr Bytes kMostLive = 16'000 * kMiB;
  std::mt19937_64 random(kSeed);
  std::uniform_int_distribution<Bytes> size(1, kMost);
  StepSequence load;
  std::vector<StepEvent> live;
  Bytes bytes_live = 0;
  while (load.slots < kRequests || !live.empty()) {
    const Bytes bytes = size(random);
    const bool allocates =
        load.slots < kRequests &&
        (live.empty() || (random() % 100 < 73 && bytes_live + bytes < kMostLive));
    if (allocates) {
      live.push_back({load.slots++, bytes});
      load.events.push_back(live.back());
      bytes_live += bytes;
    } else {
      std::swap(live[random() % live.size()], live.back());
      load.events.push_back({live.back().slot, 0});
      bytes_live -= live.back().bytes;
      live.pop_back();
    }
  }
  load.pairs = load.slots;
  return load;
}

void repeat(benchmark::State& state, const std::string& spec, const StepSequence& step) {
  const auto device = make_device();
  const auto allocator = make(spec, device->memory());
  std::vector<Block> persistent;
  for (const Bytes bytes : step.persistent)
    persistent.push_back(allocator->allocate(bytes, {.persistent = true}));
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

void training_step(benchmark::State& state, const std::string& spec) {
  static const StepSequence step = read_step(record_resnet50(1, kSeed));
  repeat(state, spec, step);
}

void rmm_random(benchmark::State& state, const std::string& spec) {
  static const StepSequence load = make_rmm_load();
  repeat(state, spec, load);
}

}  // namespace

void register_allocator_benchmarks() {
  std::vector<std::string> specs;
  for (const PeerMalloc& peer : peer_mallocs()) specs.push_back(peer.name);
  for (const auto& [name, strategy] : Registry<AllocatorStrategy>::instance().all())
    specs.insert(specs.end(), strategy.examples.begin(), strategy.examples.end());
  for (const std::string& spec : specs) {
    benchmark::RegisterBenchmark(("allocators/lifo_1KiB/" + spec).c_str(), lifo, spec);
    for (const std::size_t live : {500, 5'000, 50'000})
      benchmark::RegisterBenchmark(fmt::format("allocators/random_{}_live/{}", live, spec).c_str(),
                                   random_live, spec, live);
    benchmark::RegisterBenchmark(("allocators/training_step/" + spec).c_str(), training_step, spec);
    benchmark::RegisterBenchmark(("allocators/rmm_random/" + spec).c_str(), rmm_random, spec);
  }
}

}  // namespace headroom
