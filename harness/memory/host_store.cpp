#include "harness/memory/host_store.h"

#include <algorithm>

#include "harness/base/error.h"
#include "harness/device/poison.h"

namespace headroom {

HostStore::~HostStore() {
  trim();
  for (const auto& [address, segment] : live_) memory_.free(segment);
}

Block HostStore::allocate(Bytes bytes, const AllocationHint&) {
  if (bytes == 0) return {};
  const Segment segment = take(bytes);
  unpoison(segment.data, bytes);
  live_.emplace(segment.address, segment);
  statistics_.requested += bytes;
  statistics_.allocated += bytes;
  ++statistics_.live_blocks;
  peak_ = std::max(peak_, statistics_.requested);
  return {.address = segment.address, .requested = bytes, .size = bytes, .data = segment.data};
}

void HostStore::deallocate(const Block& block) {
  if (block.size == 0) return;
  const auto found = live_.find(block.address);
  if (found == live_.end()) throw Error("the host store: a block was given back that is not live");
  poison(found->second.data, block.size);
  idle_[block.size].push_back(found->second);
  live_.erase(found);
  statistics_.requested -= block.size;
  statistics_.allocated -= block.size;
  --statistics_.live_blocks;
}

Segment HostStore::take(Bytes bytes) {
  std::vector<Segment>& idle = idle_[bytes];
  if (!idle.empty()) {
    const Segment segment = idle.back();
    idle.pop_back();
    return segment;
  }
  if (bytes > memory_.available()) trim();
  const Segment segment = memory_.allocate(bytes);
  statistics_.reserved += segment.charged;
  ++statistics_.segments;
  reserved_peak_ = std::max(reserved_peak_, statistics_.reserved);
  return segment;
}

void HostStore::trim() {
  for (auto& [size, segments] : idle_)
    for (const Segment& segment : segments) {
      memory_.free(segment);
      statistics_.reserved -= segment.charged;
      --statistics_.segments;
    }
  idle_.clear();
}

}  // namespace headroom
