// Captures the work queued on a context's stream as a CUDA graph.
#pragma once

#include <memory>

#include "harness/device/cuda/graph_replay.h"
#include "harness/device/cuda/module/context.h"

namespace headroom::cuda {

// `copies` says whether work is also queued on the context's copy stream. The context must outlive
// the result.
std::unique_ptr<GraphDriver> make_graph_driver(const Context& context, bool copies);

}  // namespace headroom::cuda
