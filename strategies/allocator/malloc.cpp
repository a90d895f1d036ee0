// malloc: no caching, every block is a separate segment. This models training with cudaMalloc and
// cudaFree for every tensor (TF_GPU_ALLOCATOR=cuda_malloc, PyTorch's
// PYTORCH_NO_CUDA_MEMORY_CACHING=1), and is the baseline for caching: no idle memory is held, and
// every allocation is a system call. cudaFree waits for the device, so that no stream still uses a
// freed block.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/poison.h"
#include "harness/memory/allocator.h"
#include "harness/trace/trace.h"

namespace headroom {
namespace {

class Malloc final : public Allocator {
 public:
  explicit Malloc(DeviceMemory& memory) : memory_(memory) {}

  ~Malloc() override {
    for (const Segment& segment : segments_) {
      if (segment.size > 0) memory_.free(segment);
    }
  }

  Block allocate(Bytes bytes, const AllocationHint&) override {
    if (bytes == 0) return {};
    if (bytes > memory_.capacity()) throw_out_of_memory(bytes);  // too large to be rounded up
    const Segment segment = take(bytes);
    if (free_handles_.empty()) {
      free_handles_.push_back(static_cast<std::uint32_t>(segments_.size()));
      segments_.emplace_back();
    }
    const std::uint32_t handle = free_handles_.back();
    free_handles_.pop_back();
    segments_[handle] = segment;
    if (segment.data != nullptr) poison(segment.data + bytes, segment.size - bytes);
    statistics_.requested += bytes;
    statistics_.allocated += segment.size;
    statistics_.reserved += segment.charged;
    ++statistics_.live_blocks;
    ++statistics_.segments;
    return {.address = segment.address,
            .requested = bytes,
            .size = segment.size,
            .data = segment.data,
            .handle = handle};
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    if (block.handle >= segments_.size() || segments_[block.handle].address != block.address)
      throw Error("malloc: a block was freed that is not live");
    const Segment segment = segments_[block.handle];
    segments_[block.handle] = {};
    free_handles_.push_back(block.handle);
    memory_.free(segment);
    statistics_.requested -= block.requested;
    statistics_.allocated -= segment.size;
    statistics_.reserved -= segment.charged;
    --statistics_.live_blocks;
    --statistics_.segments;
  }

  AllocatorStatistics statistics() const override { return statistics_; }

 private:
  Segment take(Bytes bytes) {
    try {
      return memory_.allocate(align_up(bytes, kBlockAlignment));
    } catch (const OutOfMemory&) {
      throw_out_of_memory(bytes);
    }
  }

  [[noreturn]] void throw_out_of_memory(Bytes bytes) const {
    refuse_request(bytes, memory_, statistics_, "malloc");
  }

  DeviceMemory& memory_;
  AllocatorStatistics statistics_;
  std::vector<Segment> segments_;  // by handle; size 0 = not in use
  std::vector<std::uint32_t> free_handles_;
};

// The strategy is engaged when every tensor has a device allocation.
Reason why_no_malloc(const Spec&, const Trace& trace) {
  const auto count = [&](EventKind kind) {
    return std::count_if(trace.events.begin(), trace.events.end(),
                         [&](const TraceEvent& event) { return event.kind == kind; });
  };
  const auto blocks = count(EventKind::alloc);
  const auto segments = count(EventKind::segment_alloc);
  if (blocks == segments) return std::nullopt;
  return "malloc: " + std::to_string(blocks) + " blocks came from " + std::to_string(segments) +
         " device allocations";
}

const bool malloc_is_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "malloc",
     .summary = "One device segment per block, which is given back as soon as the block is freed. "
                "Costs a system call and page faults for each tensor",
     .parameters = {},
     .examples = {"malloc"},
     .keeps_streams_apart = true,
     .create = [](const Spec&, DeviceMemory& memory) -> std::unique_ptr<Allocator> {
       return std::make_unique<Malloc>(memory);
     },
     .why_not_engaged = why_no_malloc});

}  // namespace
}  // namespace headroom
