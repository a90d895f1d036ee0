#include "harness/gpu_driver/small_blocks.h"

#include <iterator>

namespace headroom {

std::uintptr_t SmallBlocks::take(std::size_t bytes) {
  constexpr std::size_t kAlignment = 512;
  const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  for (auto& [granule, blocks] : granules_) {
    std::size_t offset = 0;  // end of the blocks seen so far
    for (const auto& [begin, taken] : blocks) {
      if (begin - offset >= size) break;
      offset = begin + taken;
    }
    if (kGranule - offset < size) continue;
    blocks[offset] = size;
    return granule + offset;
  }
  return 0;
}

std::optional<std::uintptr_t> SmallBlocks::give_back(std::uintptr_t block) {
  const auto found = std::prev(granules_.upper_bound(block));
  const std::uintptr_t granule = found->first;
  found->second.erase(block - granule);
  if (!found->second.empty()) return std::nullopt;
  granules_.erase(found);
  return granule;
}

}  // namespace headroom
