// async: a model of CUDA's stream-ordered allocator (cudaMallocAsync), as far as NVIDIA documents
// it (CUDA Programming Guide, Stream Ordered Memory Allocator): a freed block serves the same
// stream again at once; when the stream is synchronised, idle memory above the release threshold
// goes back to the system; the threshold is 0 unless set. What is not documented is assumed, and so
// stands in for the driver rather than describes it: growth by regions of 32 MiB, best fit,
// coalescing. Cost: with the default threshold every step takes its memory anew.
#include <algorithm>
#include <memory>

#include "harness/base/registry.h"
#include "strategies/allocator/best_fit_index.h"
#include "strategies/allocator/chunked_allocator.h"

namespace headroom {
namespace {

constexpr Bytes kGrowth = 32 * kMiB;
constexpr Bytes kGrowthStep = 2 * kMiB;

class Async final : public ChunkedAllocator {
 public:
  Async(const Spec& spec, DeviceMemory& memory)
      : ChunkedAllocator(spec.to_string(), memory),
        release_threshold_(spec.bytes("release_threshold", 0)) {}

  Block allocate(Bytes bytes, const AllocationHint&) override {
    if (bytes == 0) return {};
    if (bytes > memory_.capacity()) throw_out_of_memory(bytes);  // too large to be rounded up
    const Bytes size = align_up(bytes, kBlockAlignment);
    BestFitIndex::Entry found;
    Handle handle = free_.take_at_least(size, found) ? found.handle : grow(size);
    if (handle == kNone) {
      trim();
      handle = grow(size);
    }
    if (handle == kNone) throw_out_of_memory(bytes);
    if (chunk(handle).size > size) add(split(handle, size));
    return hand_out(handle, bytes);
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    add(coalesce(take_back(block), [this](Handle free) { remove(free); }));
  }

  void trim() override { release_down_to(0); }
  void synchronized() override { release_down_to(release_threshold_); }

 private:
  Bytes largest_free() const override { return free_.largest(); }

  Handle grow(Bytes size) {
    const Bytes needed = align_up(size, kGrowthStep);
    for (const Bytes bytes : {std::max(needed, kGrowth), needed, size}) {
      if (const Handle region = add_segment(bytes); region != kNone) return region;
    }
    return kNone;
  }

  void release_down_to(Bytes threshold) {
    if (held() <= threshold) return;
    for (const Handle region : idle_segments()) {
      if (held() <= threshold) return;
      remove(region);
      free_segment(region);
    }
  }

  void add(Handle handle) { free_.insert({chunk(handle).size, chunk(handle).address, handle}); }
  void remove(Handle handle) { free_.erase(chunk(handle).size, chunk(handle).address); }

  Bytes release_threshold_;
  BestFitIndex free_;
};

const bool registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "async",
     .summary =
         "A model of cudaMallocAsync by its documented rules: memory above "
         "release_threshold= (default 0) goes back at the end of each step. The driver's own "
         "growth and fit are not documented; 32 MiB and best fit stand in for them",
     .parameters = {"release_threshold"},
     .examples = {"async", "async(release_threshold=1TiB)"},
     .create = [](const Spec& spec, DeviceMemory& memory) -> std::unique_ptr<Allocator> {
       return std::make_unique<Async>(spec, memory);
     }});

}  // namespace
}  // namespace headroom
