// expandable: PyTorch's expandable segments (PYTORCH_ALLOC_CONF=expandable_segments:True). Each
// pool reserves 1⅛ times the device in addresses and maps pages behind the last block as they are
// needed, so that a segment grows instead of leaving small unusable gaps; idle whole pages are
// unmapped when memory runs short. Decisions follow c10/cuda/CUDACachingAllocator.cpp of
// pytorch/pytorch at eb42ad6. Cost: mapping is slower than allocating a segment, and needs a device
// with virtual memory.
//
// stitching: the same, but before new pages are mapped, wholly idle pages are moved to where they
// are needed, the largest idle stretch first, like GMLake's stitching
// (doi 10.1145/3620665.3640423). GMLake maps a page at several addresses at once and keeps the
// mappings for reuse; here a page has one address, because the host's anonymous pages can be moved
// (mremap) but not mapped twice. Stitching costs time only while memory is fragmented.
//
// Every stream has its own pools; blocks that other streams use wait as in `caching`. Idle pages
// move within a stream only. Not modelled: garbage collection, which skips these segments.
#include <algorithm>
#include <memory>
#include <set>

#include "harness/base/registry.h"
#include "strategies/allocator/caching_options.h"
#include "strategies/allocator/parts/best_fit_index.h"
#include "strategies/allocator/parts/streamed_allocator.h"

namespace headroom {
namespace {

enum class NewPages { first, when_none_are_idle };

class Expandable final : public StreamedAllocator<Expandable> {
 public:
  Expandable(const Spec& spec, DeviceMemory& memory, NewPages new_pages)
      : StreamedAllocator(spec.to_string(), memory),
        options_(read_caching_options(spec, memory.total())),
        stitch_(new_pages == NewPages::when_none_are_idle) {
    if (!memory.has_virtual_memory())
      throw NotSupported(spec.to_string() +
                         ": this device has no virtual memory; host, meta and most GPUs do");
    small_page_ = align_up(kSmallSegment, memory.page());
    large_page_ = spec.bytes(
        "page", stitch_ ? small_page_ : align_up(options_.large_segment_size, memory.page()));
    if (large_page_ == 0 || large_page_ > kLargestPage || large_page_ % memory.page() != 0)
      throw InputError(spec.to_string() + ": page must be a multiple of " +
                       format_bytes(memory.page()) + ", at most " + format_bytes(kLargestPage));
  }

  ~Expandable() override {
    for (const auto& pool : pools_) {
      for (const auto& [address, handle] : pool.first) remove_all_pages(handle);
    }
  }

  Block allocate(Bytes bytes, const AllocationHint& hint) override {
    if (bytes == 0) return {};
    free_finished();
    if (bytes > memory_.capacity()) {  // too large to be rounded up
      trim();
      throw_out_of_memory(bytes);
    }
    const Bytes size = caching_block_size(bytes, options_.roundup_power2_divisions);
    Pool& pool = pool_of(hint.stream, size <= kSmallRequest ? small : large);
    Handle handle = find(pool, size);
    if (handle == kNone) handle = expand(pool, size);
    if (handle == kNone) {
      trim();
      handle = expand(pool, size);
    }
    if (handle == kNone) throw_out_of_memory(bytes);
    if (chunk(handle).size - size >= kCachingGranule) add_to_pool(split(handle, size));
    return hand_out(handle, bytes);
  }

  // Unmaps every wholly idle page, those of large pools first.
  void trim() override {
    wait_for_all_streams();
    for (const Size size : {large, small}) {
      for (Pool& pool : pools_) {
        if (pool.size != size) continue;
        for (const Handle idle : pool.mapped.all()) unmap(pool, idle);
      }
    }
  }

 private:
  friend StreamedAllocator<Expandable>;

  StreamId stream_of(Handle handle) { return pool_of(handle).stream; }
  void give_back(Handle handle) { add_to_pool(merge(handle)); }

  enum Size : std::uint32_t { small, large };

  struct Pool {
    StreamId stream = 0;
    Size size = small;
    Bytes page = 0;
    BestFitIndex mapped;  // idle chunks with pages behind them
    std::set<std::pair<Address, Handle>> unmapped{};
    std::map<Address, Handle> first{};  // first chunk of each reservation
  };

  // A chunk's tag: whether it is mapped, and its pool. Chunks merge when their tags are equal.
  static constexpr std::uint32_t kUnmapped = 1;
  bool is_mapped(Handle handle) const { return (chunk(handle).tag & kUnmapped) == 0; }
  Pool& pool_of(Handle handle) { return pools_[chunk(handle).tag >> 1]; }
  // Each stream has a small and a large pool.
  Pool& pool_of(StreamId stream, Size size) {
    while (pools_.size() < 2 * (std::size_t{stream} + 1)) {
      const auto next = static_cast<StreamId>(pools_.size() / 2);
      for (const auto& [size, page] :
           {std::pair{small, small_page_}, std::pair{large, large_page_}})
        pools_.push_back(
            {.stream = next, .size = size, .page = page, .mapped = BestFitIndex(chunks())});
    }
    return pools_[2 * std::size_t{stream} + size];
  }
  const Reservation& place_of(Handle handle) const { return places_[chunk(handle).segment]; }
  Bytes offset_of(Handle handle) const { return chunk(handle).address - place_of(handle).address; }

  Bytes largest_free() const override {
    Bytes largest = 0;
    for (const Pool& pool : pools_) largest = std::max(largest, pool.mapped.largest());
    return largest;
  }

  // The best fit, where a chunk that can still grow counts with the size it could reach. A first
  // chunk that cannot grow is the best one, since all later chunks are at least as large.
  // max_split_size may forbid its use.
  Handle find(Pool& pool, Bytes size) {
    Handle best = pool.mapped.take_at_least(size);
    if (best != kNone && can_grow(best)) best = find_from(pool, best);
    if (best == kNone || options_.may_use(size, chunk(best).size)) return best;
    pool.mapped.insert(best);
    return kNone;
  }
  Handle find_from(Pool& pool, Handle best) {
    const auto after = [&](Handle idle) {
      return pool.mapped.find_from(chunk(idle).size, chunk(idle).address + 1);
    };
    pool.mapped.insert(best);
    for (Handle next = after(best); next != kNone && expandable_size(next) < expandable_size(best);
         next = after(best))
      best = next;
    pool.mapped.erase(best);
    return best;
  }

  // kNone counts as mapped, so this is false for the last chunk.
  bool can_grow(Handle handle) const { return !is_mapped(chunk(handle).next); }
  Bytes expandable_size(Handle handle) const {
    return chunk(handle).size + (can_grow(handle) ? chunk(chunk(handle).next).size : 0);
  }

  // Maps pages until there is an idle chunk of `size`, and takes it out of the index. Returns kNone
  // when the device has too little memory; pages mapped by then stay mapped.
  Handle expand(Pool& pool, Bytes size) {
    // The original compares the size of a segment of its own, however much it maps.
    if (held() + caching_segment_size(size, options_.large_segment_size) > options_.allowed)
      return kNone;
    Handle chosen = room_to_expand(pool, size);
    if (!is_mapped(chosen)) chosen = map_front(pool, chosen, size, kNone);
    while (chosen != kNone && chunk(chosen).size < size)
      chosen = map_front(pool, chunk(chosen).next, size - chunk(chosen).size, chosen);
    if (chosen != kNone) remove_from_pool(chosen);
    return chosen;
  }

  // The first of adjacent idle chunks, mapped or not, that together hold `size`: those at the
  // lowest addresses that include unmapped addresses, or newly reserved ones.
  Handle room_to_expand(Pool& pool, Bytes size) {
    for (const auto& [address, handle] : pool.unmapped) {
      const Handle previous = chunk(handle).previous;
      const Handle start = is_free(previous) ? previous : handle;
      Bytes room = 0;
      for (Handle at = start; room < size && is_free(at); at = chunk(at).next)
        room += chunk(at).size;
      if (room >= size) return start;
    }
    return reserve(pool);
  }

  Handle reserve(Pool& pool) {
    const Reservation place = memory_.reserve(
        align_up(memory_.capacity() + memory_.capacity() / 8, pool.page), pool.page);
    const auto slot = static_cast<std::uint32_t>(places_.size());
    places_.push_back(place);
    const Handle handle =
        add_chunk({.address = place.address,
                   .size = place.size,
                   .data = place.data,
                   .segment = slot,
                   .tag = static_cast<std::uint32_t>(&pool - pools_.data()) << 1 | kUnmapped});
    pool.first.emplace(place.address, handle);
    add_to_pool(handle);
    return handle;
  }

  // Maps pages at the front of an unmapped chunk, at most as many as `bytes` need. Returns the idle
  // mapped chunk that they became part of, which is in the index, or kNone. The chunk `kept` is
  // about to be used and gives no pages; nor does the chunk that follows, which merges by itself.
  Handle map_front(Pool& pool, Handle unmapped, Bytes bytes, Handle kept) {
    bytes = std::min(align_up(bytes, pool.page), chunk(unmapped).size);
    const Reservation& place = place_of(unmapped);
    const Bytes moved = stitch_ ? move_idle_pages(unmapped, bytes, kept) : 0;
    if (moved > 0) {
      bytes = moved;
    } else {
      try {
        memory_.map(place, offset_of(unmapped), bytes);
      } catch (const OutOfMemory&) {
        return kNone;
      }
      count_held(bytes, bytes);
    }
    remove_from_pool(unmapped);
    if (chunk(unmapped).size > bytes) add_to_pool(split(unmapped, bytes));
    chunk(unmapped).tag &= ~kUnmapped;
    poison(chunk(unmapped).data, bytes);
    const Handle mapped = merge(unmapped);
    add_to_pool(mapped);
    return mapped;
  }

  // Moves up to `bytes` of pages out of the largest idle chunk that contains whole pages.
  Bytes move_idle_pages(Handle to, Bytes bytes, Handle kept) {
    for (const Size size : {large, small}) {
      Pool& pool = pool_of(pool_of(to).stream, size);
      if (pool.page != pool_of(to).page) continue;
      for (const Handle idle : pool.mapped.last(kDonorsTried)) {
        if (idle == kept || idle == chunk(to).next) continue;
        const auto [begin, pages] = whole_pages(pool, idle);
        if (pages == 0) continue;
        const Bytes moved = std::min(pages, bytes);
        memory_.move(place_of(idle), begin, place_of(to), offset_of(to), moved);
        forget_pages(pool, idle, begin, moved);
        return moved;
      }
    }
    return 0;
  }

  struct PageRange {
    Bytes offset, bytes;
  };
  PageRange whole_pages(const Pool& pool, Handle idle) const {
    const Bytes begin = align_up(offset_of(idle), pool.page);
    const Bytes end = align_down(offset_of(idle) + chunk(idle).size, pool.page);
    return {begin, end > begin ? end - begin : 0};
  }

  void unmap(Pool& pool, Handle idle) {
    const auto [begin, bytes] = whole_pages(pool, idle);
    if (bytes == 0) return;
    memory_.unmap(place_of(idle), begin, bytes);
    count_given_back(bytes, bytes);
    forget_pages(pool, idle, begin, bytes);
  }

  // Records that these pages of an idle chunk were moved or unmapped; the rest of the chunk stays
  // mapped.
  void forget_pages(Pool& pool, Handle idle, Bytes begin, Bytes bytes) {
    remove_from_pool(idle);
    Handle gone = idle;
    if (begin > offset_of(idle)) {
      gone = split(idle, begin - offset_of(idle));
      add_to_pool(idle);
    }
    if (chunk(gone).size > bytes) add_to_pool(split(gone, bytes));
    chunk(gone).tag |= kUnmapped;
    gone = merge(gone);
    add_to_pool(gone);
    if (chunk(gone).is_whole_segment()) unreserve(pool, gone);
  }

  void unreserve(Pool& pool, Handle whole) {
    remove_from_pool(whole);
    memory_.unreserve(place_of(whole));
    pool.first.erase(chunk(whole).address);
    drop_chunk(whole);
  }

  // Merges with idle neighbours of the same tag, which leave the index.
  Handle merge(Handle handle) {
    const auto joins = [&](Handle other) {
      return is_free(other) && chunk(other).tag == chunk(handle).tag;
    };
    if (const Handle previous = chunk(handle).previous; joins(previous)) {
      remove_from_pool(previous);
      absorb_next(previous);
      handle = previous;
    }
    if (const Handle next = chunk(handle).next; joins(next)) {
      remove_from_pool(next);
      absorb_next(handle);
    }
    return handle;
  }

  void add_to_pool(Handle handle) {
    if (is_mapped(handle))
      pool_of(handle).mapped.insert(handle);
    else
      pool_of(handle).unmapped.emplace(chunk(handle).address, handle);
  }
  void remove_from_pool(Handle handle) {
    if (is_mapped(handle))
      pool_of(handle).mapped.erase(handle);
    else
      pool_of(handle).unmapped.erase({chunk(handle).address, handle});
  }

  // For the destructor: also unmaps pages that are still in use.
  void remove_all_pages(Handle first) {
    const Reservation place = place_of(first);
    Bytes begin = 0;  // begin of the mapped stretch that contains `at`
    Bytes end = 0;
    for (Handle at = first; at != kNone; at = chunk(at).next) {
      const Bytes next = offset_of(at) + chunk(at).size;
      if (is_mapped(at)) {
        end = next;
        if (chunk(at).next != kNone) continue;
      }
      if (end > begin) memory_.unmap(place, begin, end - begin);
      begin = end = next;
    }
    memory_.unreserve(place);
  }

  static constexpr std::size_t kDonorsTried = 16;  // small chunks may contain no whole page

  CachingOptions options_;
  bool stitch_;
  static constexpr Bytes kLargestPage = kGiB;  // mapped in parts, each of which takes time
  Bytes small_page_ = 0;
  Bytes large_page_ = 0;
  std::vector<Pool> pools_;
  std::vector<Reservation> places_;  // by segment
};

const bool expandable_is_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "expandable",
     .summary = "PyTorch's expandable segments: each pool is one growing range of addresses. Pages "
                "of 2 MiB (small pool) and 20 MiB (page=) are mapped as needed and unmapped when "
                "memory runs short",
     .parameters = {"fraction", "large_segment_size", "max_non_split_rounding", "max_split_size",
                    "page", "roundup_power2_divisions"},
     .examples = {"expandable", "expandable(page=2MiB)"},
     .keeps_streams_apart = true,
     .create = [](const Spec& spec, DeviceMemory& memory) -> std::unique_ptr<Allocator> {
       return std::make_unique<Expandable>(spec, memory, NewPages::first);
     }});

const bool stitching_registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "stitching",
     .summary = "Expandable segments that put idle pages together before they take new ones, as "
                "GMLake does. Pages of 2 MiB (page=) are moved, not mapped at several addresses",
     .parameters = {"page"},
     .examples = {"stitching"},
     .keeps_streams_apart = true,
     .create = [](const Spec& spec, DeviceMemory& memory) -> std::unique_ptr<Allocator> {
       return std::make_unique<Expandable>(spec, memory, NewPages::when_none_are_idle);
     }});

}  // namespace
}  // namespace headroom
