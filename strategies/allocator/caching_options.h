// The parameters of `caching(…)` and `expandable(…)`, and the sizes that PyTorch's rules derive
// from a request.
#pragma once

#include <bit>
#include <limits>

#include "harness/base/spec.h"

namespace headroom {

// Constants and rules of c10/cuda/CUDACachingAllocator.cpp and its headers, under Headroom's names.
inline constexpr Bytes kCachingGranule = 512;
inline constexpr Bytes kSmallRequest = kMiB;  // largest request of the small pool
inline constexpr Bytes kSmallSegment = 2 * kMiB;
inline constexpr Bytes kOwnSegmentRequest = 10 * kMiB;  // from here segments fit the request

// Parameters are named as in PYTORCH_ALLOC_CONF, sizes in bytes instead of MB.
struct CachingOptions {
  Bytes large_segment_size = 20 * kMiB;
  Bytes max_split_size = std::numeric_limits<Bytes>::max();
  Bytes max_non_split_rounding = 20 * kMiB;
  Bytes roundup_power2_divisions = 0;       // 0 = multiples of 512 bytes
  double garbage_collection_threshold = 0;  // 0 = off
  // Bytes of the device for all segments together.
  Bytes allowed = std::numeric_limits<Bytes>::max();

  // Whether a request of `size` may be served from a free block of `available` bytes, which is at
  // least as large.
  bool may_use(Bytes size, Bytes available) const {
    if (available < max_split_size) return true;
    return size >= max_split_size && available - size < max_non_split_rounding;
  }
};

// `fraction` is that of torch.cuda.set_per_process_memory_fraction and refers to the whole memory
// of the device. Throws InputError.
CachingOptions read_caching_options(const Spec& spec, Bytes total);

// The bytes a block takes for a request of at least 1 byte.
inline Bytes caching_block_size(Bytes requested, Bytes power2_divisions) {
  if (power2_divisions <= 1 || requested <= kCachingGranule * power2_divisions)
    return align_up(requested, kCachingGranule);
  return align_up(requested, std::bit_floor(requested) / power2_divisions);
}
// The bytes of the segment that is allocated when no cached block serves `size`.
Bytes caching_segment_size(Bytes size, Bytes large_segment_size);

}  // namespace headroom
