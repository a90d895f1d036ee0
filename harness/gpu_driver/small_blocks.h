// Models where the driver puts small blocks of cudaMalloc. Requests of up to 1 MiB share granules
// of 2 MiB, larger ones take whole granules. NVIDIA does not document this. The model reproduces
// measurements with cudaMemGetInfo:
//   - 12 sizes from 400 B to 3 MiB, 256 blocks of each (github.com/JustVugg/colibri,
//     dev_alloc_footprint), for example 416 KiB for 384 KiB, because five blocks fit in a granule;
//   - 7 sizes around 1 and 2 MiB on an RTX 3090 with CUDA 13.1 (its pull request 1244);
//   - the same 12 sizes on an H200 with driver 580.159 (scripts/driver_blocks.py).
// github.com/pytorch/pytorch, pull request 17120, also reports pages of 2 MiB that small blocks
// fill up, on GPUs since Pascal. Blocks start at multiples of 512 B (github.com/cupy/cupy,
// pull request 176). Assumptions: a block takes the first gap that is large enough, and a granule
// is freed with its last block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace headroom {

inline constexpr std::size_t kGranule = std::size_t{2} << 20;
inline constexpr std::size_t kMostShared = std::size_t{1} << 20;

class SmallBlocks {
 public:
  // Takes a place for a block of 1 to kMostShared bytes. Returns 0 if no granule has enough room.
  std::uintptr_t take(std::size_t bytes);
  // Adds the granule that begins at `granule`, which must not be 0.
  void open(std::uintptr_t granule) { granules_[granule]; }
  // Frees a block. Returns and forgets its granule if no other block is in it.
  std::optional<std::uintptr_t> give_back(std::uintptr_t block);

 private:
  using Blocks = std::map<std::size_t, std::size_t>;  // bytes of each, by its offset
  std::map<std::uintptr_t, Blocks> granules_;
};

}  // namespace headroom
