// Replaces CUB's header of this name.
#pragma once

#include "tests/cuda/simulated_gpu/cub_step.h"

namespace cub {

struct DeviceSegmentedReduce {
  template <typename Values, typename T, typename Rows, typename Begins, typename Ends,
            typename Combine>
  static cudaError_t Reduce(void* temporary, std::size_t& bytes, Values values, T* results,
                            Rows rows, Begins begins, Ends ends, Combine combine, T initial,
                            cudaStream_t stream) {
    const std::size_t needs = 1 + static_cast<std::size_t>(rows);
    return headroom::simulated_gpu::step(temporary, bytes, needs, stream, [=](auto& queue) {
      for (Rows row = 0; row < rows; ++row) {
        const auto begin = begins[row];
        queue.reduce(
            ends[row] - begin, [=](auto i) -> T { return values[begin + i]; }, combine, initial,
            results + row);
      }
    });
  }
};

}  // namespace cub
