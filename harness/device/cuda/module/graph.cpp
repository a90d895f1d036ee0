// Rules of stream capture (CUDA C++ Programming Guide, "CUDA Graphs"; cuda_runtime_api.h at
// cudaStreamBeginCapture and cudaThreadExchangeStreamCaptureMode): no call may wait for captured
// work; a second stream joins the capture by waiting for an event of the first, and must be joined
// back by an event before the capture ends; captured work cannot wait for an event recorded outside
// the capture.
#include "harness/device/cuda/module/graph.h"

#include "harness/device/cuda/module/events.h"

namespace headroom::cuda {
namespace {

using Graph = Owned<CUgraph_st, cudaGraphDestroy>;
using ReadyGraph = Owned<CUgraphExec_st, cudaGraphExecDestroy>;

class StreamGraph final : public GraphDriver {
 public:
  StreamGraph(const Context& context, bool copies)
      : stream_(context.stream()), copies_(copies ? context.copies() : nullptr) {}

  // Relaxed mode: threads that load batches may call CUDA during the capture, and so may libraries,
  // for example to load a kernel that the first run did not load. Stricter modes forbid both.
  void begin() override {
    require_success(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed),
                    "to capture a stream");
    if (copies_ != nullptr) wait_for_all(copies_, stream_, forked_);
  }

  void end() override {
    if (copies_ != nullptr) wait_for_all(stream_, copies_, joined_);
    cudaGraph_t graph = nullptr;
    require_success(cudaStreamEndCapture(stream_, &graph), "to end the capture of a stream");
    graph_.reset(graph);
  }

  // The graph may be incomplete, and the error has already been reported.
  void abandon() noexcept override {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream_, &graph);
    graph_.reset(graph);
    graph_.reset();
    cudaGetLastError();
  }

  void launch() override {
    if (ready_ == nullptr)
      ready_ = make_owned<cudaGraphExecDestroy>(cudaGraphInstantiateWithFlags,
                                                "to make a graph ready", graph_.get(), 0ULL);
    require_success(cudaGraphLaunch(ready_.get(), stream_), "to launch a graph");
  }

 private:
  cudaStream_t stream_;
  cudaStream_t copies_;  // null when the Program copies nothing
  Event forked_ = make_event(), joined_ = make_event();
  Graph graph_;
  ReadyGraph ready_;
};

}  // namespace

std::unique_ptr<GraphDriver> make_graph_driver(const Context& context, bool copies) {
  return std::make_unique<StreamGraph>(context, copies);
}

}  // namespace headroom::cuda
