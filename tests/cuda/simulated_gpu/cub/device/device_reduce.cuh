// Replaces CUB's header of this name.
#pragma once

#include "tests/cuda/simulated_gpu/cub_step.h"

namespace cub {

struct DeviceReduce {
  template <typename Values, typename T, typename Count, typename Combine>
  static cudaError_t Reduce(void* temporary, std::size_t& bytes, Values values, T* result,
                            Count count, Combine combine, T initial, cudaStream_t stream) {
    const std::size_t needs = 300 + sizeof(T) * (static_cast<std::size_t>(count) / 100);
    return headroom::simulated_gpu::step(temporary, bytes, needs, stream, [=](auto& queue) {
      queue.reduce(
          count, [=](Count i) -> T { return values[i]; }, combine, initial, result);
    });
  }
};

}  // namespace cub
