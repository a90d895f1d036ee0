// cudaMallocAsync on a pool of its own, on the stream the kernels run on.
#pragma once

#include <memory>

#include "harness/device/stream_pool.h"

namespace headroom::cuda {

class Context;

// Of at most `capacity`. Null where the GPU has no such pools. `context` must outlive the pool.
std::unique_ptr<StreamPool> make_stream_pool(const StreamPoolOptions& options, Bytes capacity,
                                             const Context& context);

}  // namespace headroom::cuda
