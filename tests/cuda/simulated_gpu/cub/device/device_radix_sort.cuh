// Replaces CUB's header of this name.
#pragma once

#include "tests/cuda/simulated_gpu/cub_step.h"

namespace cub {

struct DeviceRadixSort {
  template <typename Key, typename Count>
  static cudaError_t SortKeys(void* temporary, std::size_t& bytes, const Key* keys, Key* sorted,
                              Count count, int /*begin_bit*/, int /*end_bit*/,
                              cudaStream_t stream) {
    const std::size_t needs = 1 + sizeof(Key) * static_cast<std::size_t>(count);
    return headroom::simulated_gpu::step(temporary, bytes, needs, stream,
                                         [=](auto& queue) { queue.sort(keys, sorted, count); });
  }

  template <typename Key, typename Count>
  static cudaError_t SortPairs(void* temporary, std::size_t& bytes, const Key* keys, Key* sorted,
                               const Key* values, Key* sorted_values, Count count,
                               int /*begin_bit*/, int /*end_bit*/, cudaStream_t stream) {
    const std::size_t needs = 1 + 2 * sizeof(Key) * static_cast<std::size_t>(count);
    return headroom::simulated_gpu::step(temporary, bytes, needs, stream, [=](auto& queue) {
      queue.sort_pairs(keys, sorted, values, sorted_values, count);
    });
  }
};

}  // namespace cub
