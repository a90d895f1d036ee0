// Captures what is queued on a context's stream as a CUDA graph.
#pragma once

#include <memory>

#include "harness/device/cuda/graph_replay.h"
#include "harness/device/cuda/module/context.h"

namespace headroom::cuda {

// `copies`: work is queued on the context's stream for copies, too. The context must outlive it.
std::unique_ptr<GraphDriver> make_graph_driver(const Context& context, bool copies);

}  // namespace headroom::cuda
