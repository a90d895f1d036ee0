// buddy: the binary buddy system (Knowlton, Commun. ACM 8 (1965), doi 10.1145/365628.365655; Knuth,
// TAOCP 1, 2.5). Blocks are powers of two at multiples of their size; a freed block merges only
// with its buddy. Cost: at most one split or merge per power of two; memory: up to half of each
// block is wasted, on tensors of arbitrary size about a quarter.
#include <bit>
#include <memory>

#include "harness/base/registry.h"
#include "strategies/allocator/parts/best_fit_index.h"
#include "strategies/allocator/parts/growing_regions.h"

namespace headroom {
namespace {

class Buddy final : public GrowingRegions {
 public:
  Buddy(const Spec& spec, DeviceMemory& memory) : GrowingRegions(spec, memory) {
    if (!std::has_single_bit(region()))
      throw InputError(spec.to_string() + ": region must be a power of two");
  }

  Block allocate(Bytes bytes, const AllocationHint&) override {
    if (bytes == 0) return {};
    if (bytes > memory_.capacity()) throw_out_of_memory(bytes);  // too large to be rounded up
    const Bytes size = std::bit_ceil(std::max(bytes, kBlockAlignment));
    Handle handle = free_.take_at_least(size);
    if (handle == kNone) handle = add_region(size);
    if (handle == kNone) throw_out_of_memory(bytes);
    while (chunk(handle).size > size) free_.insert(split(handle, chunk(handle).size / 2));
    return hand_out(handle, bytes);
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    Handle handle = take_back(block);
    for (Handle other = buddy(handle); other != kNone; other = buddy(handle)) {
      forget(other);
      if (other == chunk(handle).previous) handle = other;
      absorb_next(handle);
    }
    free_.insert(handle);
  }

 private:
  Bytes largest_free() const override { return free_.largest(); }

  // The other half of the block from which this one was split, if it is free and unsplit.
  Handle buddy(Handle handle) const {
    const Chunk& self = chunk(handle);
    const bool is_low = ((self.address - segment_of(handle).address) & self.size) == 0;
    const Handle other = is_low ? self.next : self.previous;
    return is_free(other) && chunk(other).size == self.size ? other : kNone;
  }

  void forget(Handle handle) override { free_.erase(handle); }

  BestFitIndex free_{chunks()};
};

const bool buddy_is_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "buddy",
     .summary =
         "The binary buddy system: blocks are powers of two and merge only with their other half. "
         "Regions of 64 MiB (region=); idle regions are given back when memory runs short",
     .parameters = {"region"},
     .examples = {"buddy", "buddy(region=8MiB)"},
     .create = create_strategy<Buddy>});

}  // namespace
}  // namespace headroom
