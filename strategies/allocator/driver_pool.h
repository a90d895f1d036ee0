// The strategy `async` on a device whose driver has stream-ordered pools; async.cpp models such a
// pool for the others.
#pragma once

#include <memory>

#include "harness/device/stream_pool.h"
#include "harness/memory/allocator.h"

namespace headroom {

// `memory` must outlive the allocator, which must be the only user of `pool`.
std::unique_ptr<Allocator> make_driver_pool_allocator(DeviceMemory& memory,
                                                      std::unique_ptr<StreamPool> pool);

}  // namespace headroom
