// Replaces CUB's header of this name.
#pragma once

#include "tests/cuda/simulated_gpu/cub_step.h"

namespace cub {

struct DeviceFor {
  template <typename Count, typename F>
  static cudaError_t Bulk(Count count, F f, cudaStream_t stream) {
    namespace gpu = headroom::simulated_gpu;
    const gpu::Lock lock;
    return gpu::give(stream, [=]() mutable {
      headroom::testing::LoopQueue(gpu::random()(), nullptr).for_each(count, f);
    });
  }
};

}  // namespace cub
