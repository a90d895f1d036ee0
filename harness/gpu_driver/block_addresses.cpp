#include "harness/gpu_driver/block_addresses.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace headroom {
namespace {

constexpr std::size_t kRegion = std::size_t{32} << 20;

}  // namespace

BlockAddresses::BlockAddresses(std::function<std::uintptr_t(std::size_t)> take_region)
    : take_region_(std::move(take_region)) {}

std::uintptr_t BlockAddresses::take(std::size_t bytes) {
  auto gap = std::find_if(gaps_.begin(), gaps_.end(),
                          [bytes](const auto& each) { return each.second >= bytes; });
  if (gap == gaps_.end()) {
    if (bytes > SIZE_MAX - kRegion) return 0;
    const std::size_t region = (bytes + kRegion - 1) / kRegion * kRegion;
    const std::uintptr_t begin = take_region_(region);
    if (begin == 0) return 0;
    gap = gaps_.emplace(begin, region).first;
  }
  const auto [begin, size] = *gap;
  gaps_.erase(gap);
  if (size > bytes) gaps_[begin + bytes] = size - bytes;
  return begin;
}

void BlockAddresses::give_back(std::uintptr_t begin, std::size_t bytes) {
  const auto behind = gaps_.find(begin + bytes);
  if (behind != gaps_.end()) {
    bytes += behind->second;
    gaps_.erase(behind);
  }
  const auto after = gaps_.lower_bound(begin);
  if (after != gaps_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      before->second += bytes;
      return;
    }
  }
  gaps_[begin] = bytes;
}

}  // namespace headroom
