#include "harness/whatif/replay.h"

#include <algorithm>
#include <chrono>

#include "harness/base/duration.h"
#include "harness/base/error.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"
#include "harness/memory/recording_allocator.h"
#include "harness/trace/recorder.h"

namespace headroom {
namespace {

std::unique_ptr<Device> make_device(const ReplayDevice& device) {
  return make_device(Spec("meta", {{"capacity", std::to_string(device.capacity)},
                                   {"granule", std::to_string(device.granule)}}));
}

AllocationHint hint_of(const RequestList& list, const Request& request) {
  AllocationHint hint{.role = request.role,
                      .phase = request.phase,
                      .op = request.op,
                      .persistent = request.phase == Phase::initialize,
                      .name = {},
                      .stream = request.stream};
  if (request.op < list.op_names.size()) hint.name = list.op_names[request.op];
  return hint;
}

// Serves requests in order. The destructor frees blocks that are still live.
class Player {
 public:
  Player(const RequestList& list, Allocator& allocator)
      : list_(list), allocator_(allocator), blocks_(list.blocks), live_(list.blocks) {}
  ~Player() {
    for (std::size_t i = 0; i < live_.size(); ++i)
      if (live_[i]) allocator_.deallocate(blocks_[i]);
  }
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  // Throws OutOfMemory; served() then returns the number of requests served. `before` is called
  // with each request. A step ends where the next one begins, if the trace records steps.
  template <typename Before>
  void run(const Before& before) {
    for (; served_ < list_.requests.size(); ++served_) {
      const Request& request = list_.requests[served_];
      if (request.step > step_ && step_ > 0) allocator_.synchronized();
      step_ = request.step;
      before(request);
      if (request.kind == Request::Kind::alloc) {
        blocks_[request.block] = allocator_.allocate(request.bytes, hint_of(list_, request));
      } else {
        allocator_.deallocate(blocks_[request.block]);
      }
      live_[request.block] = request.kind == Request::Kind::alloc;
    }
    if (step_ > 0) allocator_.synchronized();
  }

  std::size_t served() const { return served_; }

 private:
  const RequestList& list_;
  Allocator& allocator_;
  std::vector<Block> blocks_;
  std::vector<bool> live_;
  std::int32_t step_ = 0;
  std::size_t served_ = 0;
};

// The time of one pass on fresh memory, without recording.
std::chrono::nanoseconds time_of(const RequestList& list, const Spec& spec,
                                 const ReplayDevice& device) {
  const auto memory = make_device(device);
  const auto allocator = make_allocator(spec, memory->memory());
  Player player(list, *allocator);
  const auto start = Clock::now();
  player.run([](const Request&) {});
  return Clock::now() - start;
}

ReplayFailure failure_of(const RequestList& list, std::size_t index, const Trace& trace,
                         const OutOfMemory& error) {
  const Request& request = list.requests[index];
  return {.request = index,
          .step = request.step,
          .role = request.role,
          .op = request.op < list.op_names.size() ? list.op_names[request.op] : "",
          .message = error.what(),
          .explanation = explain_oom(trace)};
}

}  // namespace

ReplayOutcome replay(const RequestList& list, const Spec& allocator, const ReplayDevice& device) {
  ReplayOutcome outcome;
  outcome.allocator = allocator.to_string();
  const auto memory = make_device(device);
  TraceRecorder recorder(4 * list.requests.size() + 16);
  recorder.trace().op_names = list.op_names;
  memory->memory().record_into(&recorder);
  const auto strategy = make_allocator(allocator, memory->memory());
  RecordingAllocator recorded(*strategy, recorder);
  Player player(list, recorded);
  try {
    player.run([&](const Request& request) {
      recorder.enter_step(request.step);
      recorder.enter_op(request.op, request.phase, 0);
    });
    outcome.not_engaged = strategy->why_not_engaged();
  } catch (const OutOfMemory& error) {
    outcome.failure = failure_of(list, player.served(), recorder.trace(), error);
  }
  outcome.replayed = player.served();
  outcome.ledger = make_ledger(recorder.trace(), 0);
  const DeviceCounters& counters = memory->memory().counters();
  outcome.device_allocations = counters.segment_allocations + counters.maps;
  outcome.device_frees = counters.segment_frees + counters.unmaps;
  outcome.splits = strategy->statistics().splits;
  outcome.merges = strategy->statistics().merges;
  memory->memory().record_into(nullptr);
  return outcome;
}

bool serves(const RequestList& list, const Spec& allocator, const ReplayDevice& device) {
  try {
    static_cast<void>(time_of(list, allocator, device));
    return true;
  } catch (const OutOfMemory&) {
    return false;
  }
}

double nanoseconds_per_operation(const RequestList& list, const Spec& allocator,
                                 const ReplayDevice& device) {
  constexpr int kPasses = 20;
  constexpr std::chrono::milliseconds kEnough{50};
  const auto begin = Clock::now();
  auto best = time_of(list, allocator, device);
  for (int pass = 1; pass < kPasses && Clock::now() - begin < kEnough; ++pass)
    best = std::min(best, time_of(list, allocator, device));
  return static_cast<double>(best.count()) /
         static_cast<double>(std::max<std::size_t>(1, list.requests.size()));
}

}  // namespace headroom
