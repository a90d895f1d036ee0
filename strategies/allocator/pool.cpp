// pool: RMM's pool_memory_resource. One pool grown from large segments, best fit, exact splits,
// nothing is ever given back. Rules: include/rmm/mr/device/pool_memory_resource.hpp of rapidsai/rmm
// at 5d50a37. The original scans a list ordered by address for the smallest block that fits; here a
// sorted index finds the same block. The first segment is allocated at the first request, not at
// construction. Cost: two searches per pair; memory: the pool never shrinks below its largest size.
#include <algorithm>
#include <memory>

#include "harness/base/registry.h"
#include "strategies/allocator/parts/best_fit_index.h"
#include "strategies/allocator/parts/chunked_allocator.h"

namespace headroom {
namespace {

class Pool final : public ChunkedAllocator {
 public:
  Pool(const Spec& spec, DeviceMemory& memory)
      : ChunkedAllocator(spec.to_string(), memory),
        has_maximum_(spec.has("maximum")),
        maximum_(std::min(spec.bytes("maximum", memory.capacity()), memory.capacity())),
        initial_(align_up(spec.bytes("initial", maximum_ / 2), kBlockAlignment)) {
    if (initial_ == 0 || initial_ > maximum_)
      throw InputError(spec.to_string() + ": initial must be above 0 and at most the maximum of " +
                       format_bytes(maximum_));
  }

  Block allocate(Bytes bytes, const AllocationHint&) override {
    if (bytes == 0) return {};
    if (bytes > maximum_) throw_out_of_memory(bytes);  // too large to be rounded up
    const Bytes size = align_up(bytes, kBlockAlignment);
    Handle found = free_.take_at_least(size);
    if (found == kNone) {
      grow(size);
      found = free_.take_at_least(size);
    }
    if (found == kNone) throw_out_of_memory(bytes);
    if (chunk(found).size > size) free_.insert(split(found, size));
    return hand_out(found, bytes);
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    free_.insert(coalesce(take_back(block), [this](Handle free) { free_.erase(free); }));
  }

 private:
  Bytes largest_free() const override { return free_.largest(); }

  // Grows by half of what is left up to the maximum or, without one, by its current size. While the
  // device refuses, tries smaller sizes, down to the request.
  void grow(Bytes size) {
    const Bytes left = maximum_ - std::min(maximum_, held());
    if (size > left) return;
    Bytes wanted = held() == 0 ? initial_ : has_maximum_ ? left / 2 : held();
    for (wanted = std::max(size, wanted);; wanted = std::max(size, wanted / 2)) {
      wanted = align_up(wanted, kBlockAlignment);
      if (const Handle segment = add_segment(wanted); segment != kNone)
        return free_.insert(segment);
      if (wanted == size) return;
    }
  }

  bool has_maximum_;
  Bytes maximum_;
  Bytes initial_;
  BestFitIndex free_{chunks()};
};

const bool pool_is_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "pool",
     .summary =
         "RMM's pool: takes half of the device at once (initial=), then half of the rest up to "
         "maximum=, or as much again without a maximum. Best fit, exact splits; never shrinks",
     .parameters = {"initial", "maximum"},
     .examples = {"pool", "pool(initial=2MiB,maximum=48MiB)"},
     .create = create_strategy<Pool>});

}  // namespace
}  // namespace headroom
