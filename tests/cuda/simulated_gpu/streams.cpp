// Implements the rules of the CUDA C++ Programming Guide, "Asynchronous Concurrent Execution" and
// "CUDA Graphs".
#include "tests/cuda/simulated_gpu/streams.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/simulated_gpu/memory.h"
#include "tests/cuda/simulated_gpu/refusal.h"

namespace headroom::simulated_gpu {

void stop(const char* why) {
  std::fprintf(stderr, "simulated GPU: %s\n", why);
  std::abort();
}

namespace {

struct Capture;

// Where an event was last recorded.
struct Point {
  bool done = false;
  Capture* capture = nullptr;             // the capture in which it was recorded; null outside
  std::vector<std::size_t> steps_before;  // number of steps of each lane of that capture
};

// One item queued on a stream: work, a wait or a record.
struct Step {
  Work work = {};
  std::shared_ptr<Point> awaits = {}, records = {};
};
using Steps = std::deque<Step>;

// The steps of one stream that takes part in a capture.
struct Lane {
  cudaStream_t stream;
  Steps steps = {};
  // For each lane, the number of its steps that precede the next step here.
  std::vector<std::size_t> seen = {};
};

struct Capture {
  std::vector<Lane> lanes;  // the first lane belongs to the stream that began the capture
  bool broken = false;
  bool ended = false;
};

}  // namespace
}  // namespace headroom::simulated_gpu

using headroom::simulated_gpu::Steps;

struct CUstream_st {
  Steps steps;
  headroom::simulated_gpu::Capture* capture = nullptr;
  std::size_t lane = 0;
};

struct CUevent_st {
  std::shared_ptr<headroom::simulated_gpu::Point> last;
};

struct CUgraph_st {
  std::vector<Steps> lanes;
};

struct CUgraphExec_st {
  std::vector<Steps> lanes;
};

namespace headroom::simulated_gpu {
namespace {

std::recursive_mutex& mutex() {
  static std::recursive_mutex one;
  return one;
}

std::set<cudaStream_t>& streams() {
  static std::set<cudaStream_t> all;
  return all;
}

cudaError_t& last_error() {
  static cudaError_t last = cudaSuccess;
  return last;
}

// Runs the next step of a lane that need not wait; returns false when there is none.
bool advance(const std::vector<Steps*>& lanes) {
  std::vector<Steps*> ready;
  for (Steps* steps : lanes)
    if (!steps->empty() && (steps->front().awaits == nullptr || steps->front().awaits->done))
      ready.push_back(steps);
  if (ready.empty()) return false;
  Steps& chosen = *ready[any_of(ready.size())];
  const Step step = std::move(chosen.front());
  chosen.pop_front();
  if (step.work) step.work();
  if (step.records != nullptr) step.records->done = true;
  return true;
}

// A lane's clock counts the steps of every lane, including lanes that joined later.
std::size_t& seen(Lane& lane, std::size_t other) {
  if (lane.seen.size() <= other) lane.seen.resize(other + 1);
  return lane.seen[other];
}

void push(CUstream_st& stream, Step step) {
  if (stream.capture == nullptr) {
    stream.steps.push_back(std::move(step));
    return;
  }
  Lane& lane = stream.capture->lanes[stream.lane];
  lane.steps.push_back(std::move(step));
  seen(lane, stream.lane) = lane.steps.size();
}

cudaError_t break_capture(Capture& capture, cudaError_t why) {
  capture.broken = true;
  return refuse(why);
}

void join(CUstream_st& stream, Capture& capture) {
  stream.capture = &capture;
  stream.lane = capture.lanes.size();
  capture.lanes.push_back({.stream = &stream});
}

// Runs a whole graph as one item of a stream.
void replay(std::vector<Steps> lanes) {
  std::vector<Steps*> all;
  for (Steps& steps : lanes) {
    all.push_back(&steps);
    for (Step& step : steps)
      if (step.records != nullptr) step.records->done = false;
  }
  while (advance(all)) {
  }
  for (const Steps& steps : lanes)
    if (!steps.empty()) stop("a graph waits for itself");
}

}  // namespace

Lock::Lock() : held_(mutex()) {}

cudaError_t refuse(cudaError_t error) {
  last_error() = error;
  return error;
}

std::uint64_t seed() {
  static const std::uint64_t one = [] {
    if (const char* const given = std::getenv("HEADROOM_TEST_SEED"))
      return std::uint64_t{std::strtoull(given, nullptr, 10)};
    const std::uint64_t drawn = std::random_device{}();
    setenv("HEADROOM_TEST_SEED", std::to_string(drawn).c_str(), 1);  // the tests use the same seed
    return drawn;
  }();
  return one;
}

std::mt19937_64& random() {
  static std::mt19937_64 generator(seed());
  return generator;
}

std::size_t any_of(std::size_t count) {
  return std::uniform_int_distribution<std::size_t>(0, count - 1)(random());
}

cudaError_t give(cudaStream_t stream, Work work) {
  if (is_refused()) return refuse(cudaErrorLaunchFailure);
  if (!streams().contains(stream)) return refuse(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr && stream->capture->broken)
    return refuse(cudaErrorStreamCaptureInvalidated);
  if (!load_kernels()) return refuse(cudaErrorMemoryAllocation);
  push(*stream, {.work = std::move(work)});
  return cudaSuccess;
}

cudaError_t finish(cudaStream_t stream) {
  if (!streams().contains(stream)) return refuse(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr)
    return break_capture(*stream->capture, cudaErrorStreamCaptureUnsupported);
  if (is_lost()) {
    for (const cudaStream_t one : streams()) one->steps.clear();
    return refuse(cudaErrorLaunchFailure);
  }
  if (stream->steps.empty()) return cudaSuccess;
  const MemoryInUse in_use;
  std::vector<Steps*> all;
  for (const cudaStream_t one : streams()) all.push_back(&one->steps);
  // In half of the runs, work is delayed as long as possible.
  const bool lazy = any_of(2) == 0;
  while (!stream->steps.empty()) {
    if (lazy && advance({&stream->steps})) continue;
    if (!advance(all)) stop("a stream waits for what never comes");
  }
  return cudaSuccess;
}

cudaError_t finish_all() {
  for (const cudaStream_t stream : streams()) {
    if (stream->capture != nullptr) continue;
    if (const cudaError_t error = finish(stream); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

bool captures(cudaStream_t stream) { return stream->capture != nullptr; }

bool captures_anything() {
  for (const cudaStream_t stream : streams())
    if (captures(stream)) return true;
  return false;
}

}  // namespace headroom::simulated_gpu

using namespace headroom::simulated_gpu;

cudaError_t cudaGetLastError() {
  const Lock lock;
  return std::exchange(last_error(), cudaSuccess);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Lock lock;
  if (is_refused()) return refuse(cudaErrorUnknown);
  if (flags != cudaStreamNonBlocking) return refuse(cudaErrorNotSupported);
  *stream = new CUstream_st;
  streams().insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock;
  const cudaError_t error = finish(stream);
  if (error != cudaSuccess && error != cudaErrorLaunchFailure) return error;
  streams().erase(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock;
  return finish(stream);
}

cudaError_t cudaDeviceSynchronize() {
  const Lock lock;
  return captures_anything() ? refuse(cudaErrorStreamCaptureUnsupported) : finish_all();
}

// Destroys everything of the process, so the module may call it only when nothing is in use.
cudaError_t cudaDeviceReset() {
  const Lock lock;
  if (!streams().empty()) stop("a context is destroyed that is in use");
  unload_kernels();
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  const Lock lock;
  if (is_refused()) return refuse(cudaErrorLaunchFailure);
  if (!streams().contains(stream) || flags != cudaEventWaitDefault)
    return refuse(cudaErrorInvalidResourceHandle);
  if (event->last == nullptr) return cudaSuccess;  // the event was never recorded
  Capture* const outer = event->last->capture;
  if (outer != nullptr && outer->ended) return refuse(cudaErrorCapturedEvent);
  if (stream->capture == nullptr && outer != nullptr) join(*stream, *outer);
  if (stream->capture != outer)
    return break_capture(*stream->capture, cudaErrorStreamCaptureIsolation);
  push(*stream, {.awaits = event->last});
  if (outer == nullptr) return cudaSuccess;
  const std::vector<std::size_t>& before = event->last->steps_before;
  for (std::size_t lane = 0; lane < before.size(); ++lane) {
    std::size_t& here = seen(outer->lanes[stream->lane], lane);
    here = std::max(here, before[lane]);
  }
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const Lock lock;
  if (is_refused()) return refuse(cudaErrorUnknown);
  if (flags != cudaEventDisableTiming) return refuse(cudaErrorNotSupported);
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Lock lock;
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Lock lock;
  if (is_refused()) return refuse(cudaErrorLaunchFailure);
  if (!streams().contains(stream)) return refuse(cudaErrorInvalidResourceHandle);
  event->last = std::make_shared<Point>();
  event->last->capture = stream->capture;
  push(*stream, {.records = event->last});
  if (stream->capture != nullptr)
    event->last->steps_before = stream->capture->lanes[stream->lane].seen;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const Lock lock;
  if (is_refused()) return refuse(cudaErrorIllegalState);
  if (!streams().contains(stream)) return refuse(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr || mode != cudaStreamCaptureModeRelaxed)
    return refuse(cudaErrorIllegalState);
  // Kept for the life of the process, because events may refer to a capture as long as they exist.
  static std::deque<Capture> all;
  join(*stream, all.emplace_back());
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock;
  *graph = nullptr;
  Capture* const capture = stream->capture;
  if (capture == nullptr) return refuse(cudaErrorIllegalState);
  capture->ended = true;
  if (stream->lane != 0) return break_capture(*capture, cudaErrorStreamCaptureWrongThread);
  bool joined = true;
  for (std::size_t lane = 0; lane < capture->lanes.size(); ++lane) {
    joined &= seen(capture->lanes[0], lane) == capture->lanes[lane].steps.size();
    capture->lanes[lane].stream->capture = nullptr;
  }
  if (capture->broken || is_refused()) return refuse(cudaErrorStreamCaptureInvalidated);
  if (!joined) return refuse(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st;
  for (Lane& lane : capture->lanes) (*graph)->lanes.push_back(std::move(lane.steps));
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* ready, cudaGraph_t graph,
                                          unsigned long long flags) {
  const Lock lock;
  if (is_refused()) return refuse(cudaErrorMemoryAllocation);
  if (graph == nullptr || flags != 0) return refuse(cudaErrorInvalidValue);
  *ready = new CUgraphExec_st{graph->lanes};
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready) {
  delete ready;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream) {
  const Lock lock;
  return give(stream, [lanes = ready->lanes] { replay(lanes); });
}
