// bfc: best fit with coalescing, the allocator of TensorFlow on GPUs and of JAX. Decisions follow
// xla/tsl/framework/bfc_allocator.{h,cc} of openxla/xla at 00df9ee.
//
// Differences that change no decision: one index ordered by (size, address) replaces the 21
// power-of-two bins, which are searched in that same order; a block carries its chunk's handle,
// whereas the original looks up the address. Not modelled: spatial partitioning, timestamped chunks
// (several streams), joining adjacent regions (a virtual-memory sub-allocator offers it), waiting
// for other threads to free.
#include <algorithm>
#include <memory>

#include "harness/base/registry.h"
#include "strategies/allocator/bfc_options.h"
#include "strategies/allocator/parts/best_fit_index.h"
#include "strategies/allocator/parts/chunked_allocator.h"

namespace headroom {
namespace {

constexpr Bytes kFirstRegion = 2 * kMiB;       // when growth is on
constexpr Address kMirror = Address{1} << 62;  // far above twice the device's own addresses

class Bfc final : public ChunkedAllocator {
 public:
  Bfc(const Spec& spec, DeviceMemory& memory)
      : ChunkedAllocator(spec.to_string(), memory),
        options_(read_bfc_options(spec, memory.capacity(), memory.total())),
        next_region_(options_.growth ? std::min(options_.limit, kFirstRegion) : options_.limit) {}

  Block allocate(Bytes bytes, const AllocationHint&) override {
    if (bytes == 0) return {};
    if (bytes > options_.limit) throw_out_of_memory(bytes);  // too large to be rounded up
    const Bytes rounded = align_up(bytes, kBlockAlignment);
    Handle found = free_.take_at_least(rounded);
    if (found == kNone && (extend(rounded) || (release_free_regions(rounded) && extend(rounded))))
      found = free_.take_at_least(rounded);
    if (found == kNone) throw_out_of_memory(bytes);
    return serve(found, rounded, bytes);
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    Block known = block;
    if (options_.regions_descend && figures().live_blocks > 0 && block.handle < chunks().size())
      known.address += mirrored(block.handle);
    free_.insert(coalesce(take_back(known), [this](Handle free) { free_.erase(free); }));
  }

  void trim() override {
    for (const Handle region : idle_segments()) release(region);
  }

  Reason why_not_engaged() const override {
    if (first_region_ == 0) return name() + " never took memory from the device";
    if (options_.growth && first_region_ == options_.limit)
      return name() + ": the first region already took the whole limit, so nothing could grow";
    if (!options_.growth && figures().segments != 1)
      return name() + ": preallocation must hold exactly one region, but holds " +
             std::to_string(figures().segments);
    if (!options_.growth && first_region_ != options_.limit)
      return name() + ": preallocation must hold its whole budget of " +
             format_bytes(options_.limit) + " from the start, but got " +
             format_bytes(first_region_);
    return std::nullopt;
  }

 private:
  Bytes largest_free() const override { return free_.largest(); }

  Block serve(Handle handle, Bytes rounded, Bytes requested) {
    const Bytes size = chunk(handle).size;
    if (size >= 2 * rounded || size - rounded >= options_.max_slack)
      free_.insert(split(handle, rounded));
    Block block = hand_out(handle, requested);
    if (options_.regions_descend) block.address -= mirrored(handle);
    return block;
  }

  // The offset by which addresses of a region are raised so that regions descend. This matters
  // because the lowest of equal chunks is taken; the device's own addresses ascend.
  Bytes mirrored(Handle handle) const {
    const Segment& region = segment_of(handle);
    return (kMirror - region.address - region.size) - region.address;
  }

  // Allocates a region that can serve `rounded`; returns false if limit or device forbid it.
  bool extend(Bytes rounded) {
    const Bytes available = align_down(options_.limit - held(), kBlockAlignment);
    if (rounded > available) return false;
    bool doubled = false;
    while (next_region_ < rounded) {
      next_region_ *= 2;
      doubled = true;
    }
    Handle region = kNone;
    for (Bytes bytes = std::min(next_region_, available); region == kNone;
         bytes = back_off(bytes)) {
      if (bytes < rounded) return false;
      region = add_segment(bytes);
    }
    if (!doubled) next_region_ *= 2;
    if (first_region_ == 0) first_region_ = chunk(region).size;
    if (options_.regions_descend) chunk(region).address += mirrored(region);
    free_.insert(region);
    return true;
  }

  // Computed in single precision, as in the original.
  static Bytes back_off(Bytes bytes) {
    const auto less =
        align_up(static_cast<Bytes>(static_cast<float>(bytes) * 0.9F), kBlockAlignment);
    return less < bytes ? less : bytes - kBlockAlignment;
  }

  // The last resort: frees all idle regions if the device could then serve `rounded`.
  bool release_free_regions(Bytes rounded) {
    if (!options_.garbage_collection) return false;
    const std::vector<Handle> regions = idle_segments();
    Bytes idle = 0;
    for (const Handle region : regions) idle += chunk(region).size;
    if (idle == 0 || rounded > options_.limit - held() + idle) return false;
    for (const Handle region : regions) release(region);
    return true;
  }

  void release(Handle region) {
    free_.erase(region);
    free_segment(region);
  }

  BfcOptions options_;
  Bytes next_region_;
  Bytes first_region_ = 0;
  BestFitIndex free_{chunks()};
};

const bool bfc_is_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "bfc",
     .summary =
         "TensorFlow's best fit with coalescing. Takes its whole budget at the first "
         "allocation (growth=off), or regions that double from 2 MiB (growth=on). The "
         "budget is a fraction= of the device, or all but reserve=, at most limit=. "
         "TensorFlow's own default is a reserve of 225 MiB below 2 GiB, else "
         "500/1050/1536/1800 MiB by compute capability ≤6/7/8/9. The lowest of equal chunks is "
         "taken: with regions=descending it is in the youngest region, since mmap places each "
         "below those before it (TensorFlow on a CPU)",
     .parameters = {"fraction", "fragmentation_fraction", "garbage_collection", "growth", "limit",
                    "regions", "reserve"},
     .examples = {"bfc", "bfc(growth=on)", "bfc(fraction=0.5,growth=on)",
                  "bfc(garbage_collection=off,growth=on)", "bfc(growth=on,regions=descending)"},
     .settings = {"bfc", "bfc(growth=on)"},
     .create = create_strategy<Bfc>});

}  // namespace
}  // namespace headroom
