// cudaMallocAsync with a pool of its own, on the kernels' stream.
#pragma once

#include <memory>

#include "harness/device/stream_pool.h"

namespace headroom::cuda {

class Context;

// Makes a pool of at most `capacity` bytes. Returns null when the GPU has no such pools. `context`
// must outlive the pool.
std::unique_ptr<StreamPool> make_stream_pool(const StreamPoolOptions& options, Bytes capacity,
                                             const Context& context);

}  // namespace headroom::cuda
