// Measures how fast trace files are written and read in memory, and how small they are: for a
// training run of about a million events, and for a million random events, which do not compress.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <sstream>
#include <utility>

#include "bench/micro/benchmarks.h"
#include "bench/micro/recorded_training.h"
#include "harness/trace/file/reader.h"
#include "harness/trace/file/writer.h"

namespace headroom {
namespace {

constexpr std::uint64_t kSeed = 20261121;
constexpr std::size_t kEvents = 1'000'000;
constexpr int kSteps = 300;  // of ResNet-50

// The times resemble those of an executor on a CPU: one time stamp per op, 10 to 500 µs apart.
Trace training_trace() {
  Trace trace = record_resnet50(kSteps, kSeed);
  std::mt19937_64 random(kSeed);
  std::uniform_int_distribution<std::uint64_t> pause(10'000, 500'000);
  std::uint64_t now = 0;
  std::uint32_t op = kNoOp;
  for (TraceEvent& event : trace.events) {
    if (event.op != op) now += pause(random);
    op = event.op;
    event.time_ns = now;
  }
  return trace;
}

// Blocks of log-uniform size at random places, freed in random order.
Trace random_trace() {
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> exponent(8, 30);
  std::vector<TraceEvent> live;
  Trace trace;
  std::uint64_t now = 0;
  while (trace.events.size() < kEvents) {
    now += random() % 10'000;
    if (live.size() < 500 || random() % 2 == 0) {
      const auto requested = static_cast<Bytes>(std::exp2(exponent(random)));
      live.push_back({.kind = EventKind::alloc,
                      .id = static_cast<std::uint32_t>(trace.events.size()),
                      .requested = requested,
                      .size = align_up(requested, 256),
                      .address = random() % (80 * kGiB) / 256 * 256});
      trace.events.push_back(live.back());
    } else {
      std::swap(live[random() % live.size()], live.back());
      live.back().kind = EventKind::free;
      trace.events.push_back(live.back());
      live.pop_back();
    }
    trace.events.back().time_ns = now;
  }
  return trace;
}

const Trace& trace_named(const std::string& name) {
  static const Trace training = training_trace();
  static const Trace random = random_trace();
  return name == "resnet50" ? training : random;
}

std::string written(const Trace& trace) {
  std::ostringstream file;
  write_trace(trace, file);
  return std::move(file).str();
}

void report(benchmark::State& state, const Trace& trace, std::size_t bytes) {
  const auto events = static_cast<double>(trace.events.size());
  state.counters["events"] = events;
  state.counters["events_per_s"] =
      benchmark::Counter(events, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes_per_event"] = static_cast<double>(bytes) / events;
}

void write(benchmark::State& state, const std::string& name) {
  const Trace& trace = trace_named(name);
  std::size_t bytes = 0;
  for (auto _ : state) bytes = written(trace).size();
  report(state, trace, bytes);
}

// Reads one chunk at a time, as code that streams a trace does.
void read_stream(benchmark::State& state, const std::string& name) {
  const Trace& trace = trace_named(name);
  const std::string bytes = written(trace);
  std::vector<TraceEvent> chunk;
  for (auto _ : state) {
    std::istringstream file(bytes);
    TraceReader reader(file, name);
    for (; reader.read_chunk(chunk); chunk.clear()) benchmark::DoNotOptimize(chunk.data());
  }
  report(state, trace, bytes.size());
}

// Reads into one list of events, in fresh memory each time.
void read_whole(benchmark::State& state, const std::string& name) {
  const Trace& trace = trace_named(name);
  const std::string bytes = written(trace);
  for (auto _ : state) {
    std::istringstream file(bytes);
    TraceReader reader(file, name);
    std::vector<TraceEvent> events;
    while (reader.read_chunk(events)) {
    }
    benchmark::DoNotOptimize(events.data());
  }
  report(state, trace, bytes.size());
}

}  // namespace

void register_trace_benchmarks() {
  for (const std::string name : {"resnet50", "random"}) {
    benchmark::RegisterBenchmark(("traces/write/" + name).c_str(), write, name);
    benchmark::RegisterBenchmark(("traces/read_stream/" + name).c_str(), read_stream, name);
    benchmark::RegisterBenchmark(("traces/read_whole/" + name).c_str(), read_whole, name);
  }
}

}  // namespace headroom
