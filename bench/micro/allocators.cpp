// What one allocation and its release cost under each strategy, on meta: book-keeping only, no
// memory is touched. Every registered example takes part by name, and beside them the process's own
// malloc, which LD_PRELOAD may replace by tcmalloc, jemalloc or mimalloc.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "bench/micro/benchmarks.h"
#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"
#include "harness/memory/trace_io.h"
#include "harness/run/sample.h"

namespace headroom {
namespace {

std::unique_ptr<Device> make_device() {
  return Registry<DeviceKind>::instance().find("meta").create(
      Spec("meta", {{"capacity", "64GiB"}}));
}

constexpr const char* kPeer = "process_malloc";

// malloc and free as the process has them, below the same loads.
class ProcessMalloc final : public Allocator {
 public:
  Block allocate(Bytes bytes, const AllocationHint&) override {
    auto* data = static_cast<std::byte*>(std::malloc(bytes));
    benchmark::DoNotOptimize(data);
    return {.requested = bytes, .size = bytes, .data = data};
  }
  void deallocate(const Block& block) override { std::free(block.data); }
  AllocatorStatistics statistics() const override { return {}; }
};

std::unique_ptr<Allocator> make(const std::string& spec, DeviceMemory& memory) {
  if (spec == kPeer) return std::make_unique<ProcessMalloc>();
  return make_allocator(Spec::parse_composition(spec), memory);
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
  const auto allocator = make(spec, device->memory());
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
  const auto allocator = make(spec, device->memory());
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

// One training step of ResNet-50 at batch 8, recorded on meta: what is taken before it stays, what
// it takes it gives back.
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

Trace record_run() {
  const Cell cell{.workload = Spec::parse("resnet(batch=8,depth=50,image=224,stem=imagenet)"),
                  .device = Spec::parse("meta(capacity=64GiB)"),
                  .rules = "dense",
                  .allocator = Spec("malloc"),
                  .warmup_steps = 1,
                  .measured_steps = 1};
  const auto path = std::filesystem::temp_directory_path() /
                    fmt::format("headroom-micro-{}.trace.json.gz", getpid());
  const Sample sample = run_cell(cell, kSeed, path);
  if (sample.status != SampleStatus::ok)
    throw Error("the step to be replayed could not be recorded: " + sample.reason);
  Trace trace = read_trace(path);
  std::filesystem::remove(path);
  return trace;
}

StepSequence read_step(const Trace& trace) {
  constexpr std::int32_t kStep = 2;  // the steady one
  StepSequence step;
  std::map<std::uint32_t, std::size_t> slots;  // of blocks taken in this step
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

void training_step(benchmark::State& state, const std::string& spec) {
  static const StepSequence step = read_step(record_run());
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

}  // namespace

void register_allocator_benchmarks() {
  std::vector<std::string> specs = {kPeer};
  for (const auto& [name, strategy] : Registry<AllocatorStrategy>::instance().all())
    specs.insert(specs.end(), strategy.examples.begin(), strategy.examples.end());
  for (const std::string& spec : specs) {
    benchmark::RegisterBenchmark(("allocators/lifo_1KiB/" + spec).c_str(), lifo, spec);
    benchmark::RegisterBenchmark(("allocators/random_500_live/" + spec).c_str(), random_500_live,
                                 spec);
    benchmark::RegisterBenchmark(("allocators/training_step/" + spec).c_str(), training_step, spec);
  }
}

}  // namespace headroom
