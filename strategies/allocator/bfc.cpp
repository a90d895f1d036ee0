// bfc: best fit with coalescing, the allocator of TensorFlow on GPUs and of JAX. Decisions follow
// xla/tsl/framework/bfc_allocator.{h,cc} of openxla/xla at 00df9ee.
//
// Differences that change no decision: one index ordered by (size, address) replaces the 21
// power-of-two bins, which are searched in that same order; a block carries its chunk's handle
// where the original looks the address up. Not modelled: spatial partitioning, timestamped chunks
// (several streams), joining adjacent regions (a virtual-memory sub-allocator offers it), waiting
// for other threads to free.
#include <algorithm>
#include <memory>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/memory/allocator.h"
#include "harness/memory/poison.h"
#include "strategies/allocator/best_fit_index.h"
#include "strategies/allocator/bfc_options.h"

namespace headroom {
namespace {

constexpr Bytes kFirstRegion = 2 * kMiB;  // with growth

using ChunkHandle = std::uint32_t;
constexpr ChunkHandle kNoChunk = ~ChunkHandle{0};

struct Chunk {
  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;        // 0 = free
  std::byte* data = nullptr;  // null on meta
  ChunkHandle previous = kNoChunk;
  ChunkHandle next = kNoChunk;

  bool in_use() const { return requested > 0; }
};

struct Region {
  Segment segment;
  ChunkHandle first = kNoChunk;  // keeps its handle as long as the region lives
};

class Bfc final : public Allocator {
 public:
  Bfc(const Spec& spec, DeviceMemory& memory)
      : name_(spec.to_string()),
        options_(read_bfc_options(spec, memory.capacity())),
        memory_(memory),
        next_region_(options_.growth ? std::min(options_.limit, kFirstRegion) : options_.limit) {}

  ~Bfc() override {
    for (const Region& region : regions_) memory_.free(region.segment);
  }

  Block allocate(Bytes bytes, const AllocationHint&) override {
    if (bytes == 0) return {};
    if (bytes > options_.limit) throw_out_of_memory(bytes);  // too large to be rounded up
    const Bytes rounded = align_up(bytes, kBlockAlignment);
    BestFitIndex::Entry found;
    if (free_.take_at_least(rounded, found)) return serve(found.handle, rounded, bytes);
    if (extend(rounded) || (release_free_regions(rounded) && extend(rounded))) {
      free_.take_at_least(rounded, found);
      return serve(found.handle, rounded, bytes);
    }
    throw_out_of_memory(bytes);
  }

  void deallocate(const Block& block) override {
    if (block.size == 0) return;
    if (block.handle >= chunks_.size() || chunks_[block.handle].address != block.address ||
        !chunks_[block.handle].in_use())
      throw Error(name_ + ": a block was freed that is not live");
    Chunk& chunk = chunks_[block.handle];
    statistics_.requested -= chunk.requested;
    statistics_.allocated -= chunk.size;
    --statistics_.live_blocks;
    chunk.requested = 0;
    if (chunk.data != nullptr) poison(chunk.data, chunk.size);
    ChunkHandle handle = block.handle;
    if (is_free(chunk.next)) {
      remove_from_index(chunk.next);
      absorb_next(handle);
    }
    if (is_free(chunk.previous)) {
      handle = chunk.previous;
      remove_from_index(handle);
      absorb_next(handle);
    }
    add_to_index(handle);
  }

  AllocatorStatistics statistics() const override {
    AllocatorStatistics result = statistics_;
    result.largest_free = free_.largest();
    return result;
  }

  std::string why_not_engaged() const override {
    if (first_region_ == 0) return name_ + " never took memory from the device";
    if (options_.growth && first_region_ == options_.limit)
      return name_ + ": the first region already took the whole limit, so nothing could grow";
    if (!options_.growth && regions_.size() != 1)
      return name_ + ": preallocation must hold exactly one region, but holds " +
             std::to_string(regions_.size());
    return "";
  }

 private:
  Block serve(ChunkHandle handle, Bytes rounded, Bytes requested) {
    const Bytes size = chunks_[handle].size;
    if (size >= 2 * rounded || size - rounded >= options_.max_slack) split(handle, rounded);
    Chunk& chunk = chunks_[handle];
    chunk.requested = requested;
    if (chunk.data != nullptr) unpoison(chunk.data, requested);
    statistics_.requested += requested;
    statistics_.allocated += chunk.size;
    ++statistics_.live_blocks;
    return {.address = chunk.address,
            .requested = requested,
            .size = chunk.size,
            .data = chunk.data,
            .handle = handle};
  }

  // The low part stays under `handle`; the rest becomes a free chunk.
  void split(ChunkHandle handle, Bytes size) {
    const ChunkHandle rest = new_chunk();
    Chunk& low = chunks_[handle];
    chunks_[rest] = {.address = low.address + size,
                     .size = low.size - size,
                     .data = low.data == nullptr ? nullptr : low.data + size,
                     .previous = handle,
                     .next = low.next};
    if (low.next != kNoChunk) chunks_[low.next].previous = rest;
    low.next = rest;
    low.size = size;
    add_to_index(rest);
    ++statistics_.splits;
  }

  void absorb_next(ChunkHandle handle) {
    Chunk& chunk = chunks_[handle];
    const ChunkHandle gone = chunk.next;
    chunk.size += chunks_[gone].size;
    chunk.next = chunks_[gone].next;
    if (chunk.next != kNoChunk) chunks_[chunk.next].previous = handle;
    unused_.push_back(gone);
    ++statistics_.merges;
  }

  // Takes a region that can serve `rounded`; false when limit or device forbid it.
  bool extend(Bytes rounded) {
    const Bytes available = align_down(options_.limit - pool_, kBlockAlignment);
    if (rounded > available) return false;
    bool doubled = false;
    while (next_region_ < rounded) {
      next_region_ *= 2;
      doubled = true;
    }
    Segment segment;
    for (Bytes bytes = std::min(next_region_, available);; bytes = back_off(bytes)) {
      if (bytes < rounded) return false;
      if (try_allocate(bytes, segment)) break;
    }
    if (!doubled) next_region_ *= 2;
    add_region(segment);
    return true;
  }

  bool try_allocate(Bytes bytes, Segment& segment) {
    try {
      segment = memory_.allocate(bytes);
      return true;
    } catch (const OutOfMemory&) {
      return false;
    }
  }

  // In single precision, as the original computes it.
  static Bytes back_off(Bytes bytes) {
    const auto less =
        align_up(static_cast<Bytes>(static_cast<float>(bytes) * 0.9F), kBlockAlignment);
    return less < bytes ? less : bytes - kBlockAlignment;
  }

  void add_region(const Segment& segment) {
    const ChunkHandle handle = new_chunk();
    chunks_[handle] = {.address = segment.address, .size = segment.size, .data = segment.data};
    if (segment.data != nullptr) poison(segment.data, segment.size);
    regions_.push_back({segment, handle});
    pool_ += segment.size;
    statistics_.reserved += segment.charged;
    ++statistics_.segments;
    if (first_region_ == 0) first_region_ = segment.size;
    add_to_index(handle);
  }

  // The last resort: gives wholly free regions back, if the device could then serve `rounded`.
  bool release_free_regions(Bytes rounded) {
    if (!options_.garbage_collection) return false;
    // Neighbours that are both free have merged, so a free region is one free chunk.
    const auto is_idle = [this](const Region& region) {
      const Chunk& chunk = chunks_[region.first];
      return !chunk.in_use() && chunk.next == kNoChunk;
    };
    Bytes idle = 0;
    for (const Region& region : regions_) idle += is_idle(region) ? region.segment.size : 0;
    if (idle == 0 || rounded > options_.limit - pool_ + idle) return false;
    for (const Region& region : regions_) {
      if (!is_idle(region)) continue;
      remove_from_index(region.first);
      memory_.free(region.segment);
      pool_ -= region.segment.size;
      statistics_.reserved -= region.segment.charged;
      --statistics_.segments;
    }
    std::erase_if(regions_, [&](const Region& region) {
      if (!is_idle(region)) return false;
      unused_.push_back(region.first);
      return true;
    });
    return true;
  }

  bool is_free(ChunkHandle handle) const { return handle != kNoChunk && !chunks_[handle].in_use(); }
  void add_to_index(ChunkHandle handle) {
    free_.insert({chunks_[handle].size, chunks_[handle].address, handle});
  }
  void remove_from_index(ChunkHandle handle) {
    free_.erase(chunks_[handle].size, chunks_[handle].address);
  }

  ChunkHandle new_chunk() {
    if (unused_.empty()) {
      chunks_.emplace_back();
      return static_cast<ChunkHandle>(chunks_.size() - 1);
    }
    const ChunkHandle handle = unused_.back();
    unused_.pop_back();
    return handle;
  }

  [[noreturn]] void throw_out_of_memory(Bytes bytes) const {
    throw OutOfMemory({.requested_bytes = bytes,
                       .capacity_bytes = memory_.capacity(),
                       .reserved_bytes = statistics_.reserved,
                       .allocated_bytes = statistics_.allocated,
                       .free_bytes = pool_ - statistics_.allocated,
                       .largest_free_bytes = free_.largest(),
                       .allocator = name_});
  }

  std::string name_;
  BfcOptions options_;
  DeviceMemory& memory_;
  Bytes next_region_;
  Bytes first_region_ = 0;
  Bytes pool_ = 0;  // Σ usable bytes of regions
  std::vector<Region> regions_;
  std::vector<Chunk> chunks_;
  std::vector<ChunkHandle> unused_;
  BestFitIndex free_;
  AllocatorStatistics statistics_;
};

const bool registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "bfc",
     .summary = "TensorFlow's best fit with coalescing. Takes its whole budget at the first "
                "allocation (growth=off), or regions that double from 2 MiB (growth=on). Budget: "
                "fraction of the device, or all but reserve=, at most limit=; TensorFlow's own "
                "default is a reserve of 225 MiB below 2 GiB, else 500/1050/1536/1800 MiB by "
                "compute capability ≤6/7/8/9",
     .parameters = {"fraction", "fragmentation_fraction", "garbage_collection", "growth", "limit",
                    "reserve"},
     .examples = {"bfc", "bfc(growth=on)", "bfc(fraction=0.5,growth=on)",
                  "bfc(garbage_collection=off,growth=on)"},
     .create = [](const Spec& spec, DeviceMemory& memory) -> std::unique_ptr<Allocator> {
       return std::make_unique<Bfc>(spec, memory);
     }});

}  // namespace
}  // namespace headroom
