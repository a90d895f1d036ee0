// The driver makes all decisions; this class only does the bookkeeping. The driver does not
// disclose where blocks lie in its pool. So each block is recorded as a segment, and the remaining
// memory of the pool as one more, so that reserved bytes equal the driver's figure. Counts of
// device allocations count these records, not the driver's calls to the system.
#include "strategies/allocator/driver_pool.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/base/error.h"

namespace headroom {
namespace {

class AllocatorOverPool final : public Allocator {
 public:
  AllocatorOverPool(DeviceMemory& memory, std::unique_ptr<StreamPool> pool)
      : memory_(memory), pool_(std::move(pool)) {}

  ~AllocatorOverPool() override {
    for (const Segment& segment : blocks_) {
      if (segment.size == 0) continue;
      memory_.disown(segment);
      pool_->give(segment.data);
    }
    forget_idle();
  }

  Block allocate(Bytes bytes, const AllocationHint&) override {
    if (bytes == 0) return {};
    if (bytes > memory_.capacity()) throw_out_of_memory(bytes);  // too large to be rounded up
    const Bytes size = align_up(bytes, kBlockAlignment);
    std::byte* data = pool_->take(size);
    if (data == nullptr) {
      trim();
      data = pool_->take(size);
    }
    if (data == nullptr) throw_out_of_memory(bytes);
    forget_idle();  // first, because the block may be taken from idle memory
    if (unused_handles_.empty()) {
      unused_handles_.push_back(static_cast<std::uint32_t>(blocks_.size()));
      blocks_.emplace_back();
    }
    const std::uint32_t handle = unused_handles_.back();
    unused_handles_.pop_back();
    const Segment& segment = blocks_[handle] = memory_.adopt(data, size);
    statistics_.requested += bytes;
    statistics_.allocated += size;
    ++statistics_.live_blocks;
    count_idle();
    return {.address = segment.address,
            .requested = bytes,
            .size = size,
            .data = data,
            .handle = handle};
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    if (block.handle >= blocks_.size() || blocks_[block.handle].size == 0 ||
        blocks_[block.handle].address != block.address)
      throw Error("async: a block was freed that is not live");
    const Segment segment = std::exchange(blocks_[block.handle], {});
    unused_handles_.push_back(block.handle);
    memory_.disown(segment);
    pool_->give(segment.data);
    statistics_.requested -= block.requested;
    statistics_.allocated -= block.size;
    --statistics_.live_blocks;
    count_idle();
  }

  // largest_free stays 0: the driver does not report it.
  AllocatorStatistics statistics() const override {
    AllocatorStatistics result = statistics_;
    result.reserved = statistics_.allocated + idle_.size;
    result.segments = statistics_.live_blocks + (idle_.size > 0 ? 1 : 0);
    return result;
  }

  void trim() override {
    pool_->trim(0);
    count_idle();
  }
  // By now the driver has returned idle memory above its threshold.
  void synchronized() override { count_idle(); }

 private:
  void forget_idle() {
    if (idle_.size > 0) memory_.disown(std::exchange(idle_, {}));
  }

  void count_idle() {
    const Bytes held = pool_->held();
    const Bytes idle = held - std::min(held, statistics_.allocated);
    if (idle == idle_.size) return;
    forget_idle();
    if (idle > 0) idle_ = memory_.adopt(nullptr, idle);
  }

  [[noreturn]] void throw_out_of_memory(Bytes bytes) const {
    refuse_request(bytes, memory_, statistics(), "async");
  }

  DeviceMemory& memory_;
  std::unique_ptr<StreamPool> pool_;
  AllocatorStatistics statistics_;
  std::vector<Segment> blocks_;  // by handle; size 0 = not in use
  std::vector<std::uint32_t> unused_handles_;
  Segment idle_;
};

}  // namespace

std::unique_ptr<Allocator> make_driver_pool_allocator(DeviceMemory& memory,
                                                      std::unique_ptr<StreamPool> pool) {
  return std::make_unique<AllocatorOverPool>(memory, std::move(pool));
}

}  // namespace headroom
