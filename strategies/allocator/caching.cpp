// caching: PyTorch's allocator for GPUs. Blocks of up to 1 MiB are cut from segments of 2 MiB, up
// to 10 MiB from segments of 20 MiB, larger ones get a segment of their own, rounded up to 2 MiB;
// freed segments are cached and returned only as a last resort. Decisions follow
// c10/cuda/CUDACachingAllocator.cpp of pytorch/pytorch at eb42ad6; parameters are those of
// PYTORCH_ALLOC_CONF. Cost: two searches of a sorted index per pair; memory: cached blocks that
// requests of another size class cannot use.
//
// Every stream has its own pools. A block that another stream uses (record_stream) is free once
// that stream has reached the point of the free, which is checked at the next request; before the
// cache is emptied, all streams are synchronised, as in the original.
//
// Not modelled: private pools of CUDA graphs, callbacks that free memory, pinned host memory,
// several entries in roundup_power2_divisions. Expandable segments are a strategy of their own.
#include <algorithm>
#include <memory>

#include "harness/base/registry.h"
#include "strategies/allocator/caching_options.h"
#include "strategies/allocator/parts/best_fit_index.h"
#include "strategies/allocator/parts/streamed_allocator.h"

namespace headroom {
namespace {

class Caching final : public StreamedAllocator<Caching> {
 public:
  Caching(const Spec& spec, DeviceMemory& memory)
      : StreamedAllocator(spec.to_string(), memory),
        options_(read_caching_options(spec, memory.total())) {}

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes == 0) return {};
    free_finished();
    if (bytes > memory_.capacity()) {  // too large to be rounded up
      trim();
      throw_out_of_memory(bytes);
    }
    const Bytes size = caching_block_size(bytes, options_.roundup_power2_divisions);
    const Pool pool = pool_of(hint.stream, size);
    Handle handle = find(pool, size);
    if (handle == kNone) handle = take_segment(pool, size);
    if (handle == kNone) throw_out_of_memory(bytes);
    if (is_worth_splitting(pool, chunk(handle).size, size)) add_to_pool(split(handle, size));
    return hand_out(handle, bytes);
  }

  void trim() override {
    wait_for_all_streams();
    for (const Handle segment : idle_segments()) release(segment);
  }

 private:
  friend StreamedAllocator<Caching>;

  StreamId stream_of(Handle handle) {
    return static_cast<StreamId>(chunk(handle).tag / kPoolsPerStream);
  }
  void give_back(Handle handle) { add_to_pool(merge(handle)); }

  // Index of a pool, which is also a chunk's tag; each stream has a small and a large pool.
  using Pool = std::uint32_t;
  static constexpr Pool kPoolsPerStream = 2;
  static bool is_small(Pool pool) { return pool % kPoolsPerStream == 0; }

  Pool pool_of(StreamId stream, Bytes size) {
    const Pool pool = kPoolsPerStream * stream + (size <= kSmallRequest ? 0 : 1);
    if (pool >= pools_.size()) add_pools(pool);
    return pool;
  }
  // The rare path is not inlined, so that the frequent one needs few registers.
  [[gnu::noinline]] void add_pools(Pool last) {
    while (pools_.size() <= last) pools_.emplace_back(chunks());
  }

  Bytes largest_free() const override {
    Bytes largest = 0;
    for (const BestFitIndex& pool : pools_) largest = std::max(largest, pool.largest());
    return largest;
  }

  Handle merge(Handle handle) {
    return coalesce(handle, [this](Handle free) { remove_from_pool(free); });
  }

  // The best fit, unless max_split_size forbids using such a large block for this size.
  Handle find(Pool pool, Bytes size) {
    large_searches_ += is_small(pool) ? 0 : 1;
    const Handle found = pools_[pool].take_at_least(size);
    if (found == kNone || options_.may_use(size, chunk(found).size)) return found;
    pools_[pool].insert(found);
    return kNone;
  }

  // For the large pool only the remaining size and max_split_size decide. The code avoids a branch
  // on the pool, because the pool of a request is unpredictable.
  bool is_worth_splitting(Pool pool, Bytes available, Bytes size) const {
    const Bytes least = is_small(pool) ? kCachingGranule : kSmallRequest + 1;
    const bool may_be_split = is_small(pool) | (size < options_.max_split_size);
    return may_be_split & (available - size >= least);
  }

  // Called when no cached block serves the request: collects garbage, asks the device, and frees
  // idle memory step by step before asking again.
  [[gnu::noinline]] Handle take_segment(Pool pool, Bytes size) {
    const Bytes bytes = caching_segment_size(size, options_.large_segment_size);
    collect_garbage();
    Handle segment = ask_device(pool, bytes);
    if (segment == kNone && release_oversize(pool, size)) segment = ask_device(pool, bytes);
    if (segment == kNone) {
      trim();
      segment = ask_device(pool, bytes);
    }
    return segment;
  }

  Handle ask_device(Pool pool, Bytes bytes) {
    if (held() + bytes > options_.allowed) return kNone;
    const Handle segment = add_segment(bytes);
    if (segment != kNone) chunk(segment).tag = pool;
    return segment;
  }

  // Frees idle large segments until reserved memory is below the threshold: in each round those
  // that have been idle for at least the average number of searches.
  void collect_garbage() {
    if (options_.garbage_collection_threshold == 0) return;
    const auto threshold = static_cast<Bytes>(options_.garbage_collection_threshold *
                                              static_cast<double>(options_.allowed));
    if (held() <= threshold) return;
    const Bytes target = held() - threshold;
    std::vector<Handle> idle = idle_segments();
    std::erase_if(idle, [this](Handle segment) { return is_small(chunk(segment).tag); });
    Bytes reclaimed = 0;
    for (bool released = true; reclaimed < target && released && !idle.empty();) {
      double total_age = 0;
      for (const Handle segment : idle) total_age += age(segment);
      const double average = total_age / static_cast<double>(idle.size());
      released = std::erase_if(idle, [&](Handle segment) {
                   if (age(segment) < average) return false;
                   reclaimed += chunk(segment).size;
                   release(segment);
                   return true;
                 }) > 0;
    }
  }

  // With max_split_size: frees one cached block that is large enough, or the largest ones until
  // their sum is.
  bool release_oversize(Pool pool, Bytes size) {
    if (options_.max_split_size == std::numeric_limits<Bytes>::max()) return false;
    const Bytes wanted = std::max(size, options_.max_split_size);
    if (const Handle found = pools_[pool].take_at_least(wanted); found != kNone) {
      free_segment(found);
      return true;
    }
    Bytes released = 0;
    while (released < wanted && pools_[pool].largest() >= options_.max_split_size) {
      const Handle largest = pools_[pool].take_largest();
      released += chunk(largest).size;
      free_segment(largest);
    }
    return released >= wanted;
  }

  void release(Handle segment) {
    remove_from_pool(segment);
    free_segment(segment);
  }

  // The number of searches of the large pool since the segment became idle.
  double age(Handle segment) const {
    return static_cast<double>(large_searches_ - idle_since_[chunk(segment).segment]);
  }

  void add_to_pool(Handle handle) {
    const Chunk& idle = chunk(handle);
    pools_[idle.tag].insert(handle);
    if (options_.garbage_collection_threshold == 0 || !idle.is_whole_segment()) return;
    if (idle_since_.size() <= idle.segment) idle_since_.resize(idle.segment + 1);
    idle_since_[idle.segment] = large_searches_;
  }
  void remove_from_pool(Handle handle) { pools_[chunk(handle).tag].erase(handle); }

  CachingOptions options_;
  std::vector<BestFitIndex> pools_;
  std::uint64_t large_searches_ = 0;
  std::vector<std::uint64_t> idle_since_;  // by segment; only for garbage collection
};

const bool caching_is_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "caching",
     .summary =
         "PyTorch's caching allocator: small and large pools, segments of 2 and 20 MiB, best fit. "
         "Freed segments are kept until memory runs short. Parameters are those of "
         "PYTORCH_ALLOC_CONF, in bytes; fraction= is that of set_per_process_memory_fraction",
     .parameters = {"fraction", "garbage_collection_threshold", "large_segment_size",
                    "max_non_split_rounding", "max_split_size", "roundup_power2_divisions"},
     .examples = {"caching", "caching(max_split_size=24MiB)", "caching(roundup_power2_divisions=4)",
                  "caching(fraction=0.9,garbage_collection_threshold=0.6)"},
     .settings = {"caching", "caching(max_split_size=128MiB)",
                  "caching(fraction=0.99,garbage_collection_threshold=0.8)",
                  "caching(roundup_power2_divisions=4)"},
     .keeps_streams_apart = true,
     .create = create_strategy<Caching>});

}  // namespace
}  // namespace headroom
