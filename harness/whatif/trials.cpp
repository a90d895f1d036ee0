#include "harness/whatif/trials.h"

#include <fmt/format.h>

#include <chrono>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/base/scratch_directory.h"
#include "harness/device/device.h"
#include "harness/runner/sample_process.h"
#include "harness/trace/trace_io.h"

namespace headroom {
namespace {

class SimulatedTrials final : public Trials {
 public:
  SimulatedTrials(BatchRequests& requests, Bytes granule)
      : requests_(requests), granule_(granule) {}

  bool fits(const Spec& allocator, std::int64_t batch, Bytes capacity) override {
    return serves(*requests_.of(batch), allocator, {.capacity = capacity, .granule = granule_});
  }

  std::optional<ReplayFailure> failure(const Spec& allocator, std::int64_t batch,
                                       Bytes capacity) override {
    return replay(*requests_.of(batch), allocator, {.capacity = capacity, .granule = granule_})
        .failure;
  }

 private:
  BatchRequests& requests_;
  Bytes granule_;
};

class TrainedTrials final : public Trials {
 public:
  explicit TrainedTrials(const Cell& cell) : cell_(cell) {}

  bool fits(const Spec& allocator, std::int64_t batch, Bytes capacity) override {
    return train(allocator, batch, capacity, "").status != SampleStatus::oom;
  }

  std::optional<ReplayFailure> failure(const Spec& allocator, std::int64_t batch,
                                       Bytes capacity) override {
    const ScratchDirectory scratch;
    const std::string file = (scratch.path() / "trace.hrtrace").string();
    const Sample sample = train(allocator, batch, capacity, file);
    if (sample.status != SampleStatus::oom) return std::nullopt;
    Trace trace = read_trace(file);
    // Later events belong to the end of training, which frees everything.
    while (!trace.events.empty() && trace.events.back().kind != EventKind::oom)
      trace.events.pop_back();
    if (trace.events.empty()) return std::nullopt;  // the device itself was too small
    std::size_t request = 0;
    for (const TraceEvent& event : trace.events)
      request += event.kind == EventKind::alloc || event.kind == EventKind::free ? 1 : 0;
    const TraceEvent& last = trace.events.back();
    return ReplayFailure{.request = request,
                         .step = last.step,
                         .role = last.role,
                         .op = last.op < trace.op_names.size() ? trace.op_names[last.op] : "",
                         .message = sample.reason,
                         .explanation = explain_oom(trace)};
  }

 private:
  static constexpr std::chrono::minutes kTimeout{10};

  Sample train(const Spec& allocator, std::int64_t batch, Bytes capacity,
               const std::string& trace_path) const {
    Cell cell = with_batch(cell_, batch);
    cell.allocator = allocator;
    cell.device.set("capacity", std::to_string(capacity));
    // A driver's context that planning left in this process would be missing in the child.
    const DeviceKind& kind = Registry<DeviceKind>::instance().find(cell.device.name());
    if (kind.let_go) kind.let_go();
    const auto sample = run_in_child({.cell = cell, .seed = 0, .trace_path = trace_path}, kTimeout);
    if (!sample) throw Interrupted("interrupted");
    switch (sample->status) {
      case SampleStatus::invalid:  // it trained, but the strategy did not engage
      case SampleStatus::ok:
      case SampleStatus::oom:
        return *sample;
      case SampleStatus::crash:
      case SampleStatus::timeout:
      case SampleStatus::unsupported:
        break;
    }
    throw NotSupported(
        fmt::format("batch {} in {}: {}", batch, format_bytes(capacity), sample->reason));
  }

  Cell cell_;
};

}  // namespace

std::unique_ptr<Trials> simulated_trials(BatchRequests& requests, Bytes granule) {
  return std::make_unique<SimulatedTrials>(requests, granule);
}

std::unique_ptr<Trials> trained_trials(const Cell& cell) {
  return std::make_unique<TrainedTrials>(cell);
}

}  // namespace headroom
