// The common part of strategies that cut segments into chunks: the chunks with their neighbours,
// the figures every strategy reports, and the exchange of segments with the device. The strategy
// decides which chunk serves a request, when chunks are split or merged, and how segments are
// sized.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/device/poison.h"
#include "harness/memory/allocator.h"
#include "strategies/allocator/parts/chunk.h"

namespace headroom {

class ChunkedAllocator : public Allocator {
 public:
  ~ChunkedAllocator() override;
  AllocatorStatistics statistics() const final {
    AllocatorStatistics result = statistics_;
    result.largest_free = largest_free();
    return result;
  }

 protected:
  using Handle = ChunkHandle;
  static constexpr Handle kNone = kNoChunk;

  ChunkedAllocator(std::string name, DeviceMemory& memory)
      : memory_(memory), name_(std::move(name)) {}

  // The size of the largest free chunk.
  virtual Bytes largest_free() const = 0;

  Chunks& chunks() { return chunks_; }
  Chunk& chunk(Handle handle) { return chunks_[handle]; }
  const Chunk& chunk(Handle handle) const { return chunks_[handle]; }
  const std::string& name() const { return name_; }
  const AllocatorStatistics& figures() const { return statistics_; }
  Bytes held() const { return held_; }

  // hand_out() turns a free chunk into a live block; take_back() reverses this after checking that
  // the block belongs to this allocator.
  [[gnu::always_inline]] Block hand_out(Handle handle, Bytes requested) {
    Chunk& chunk = chunks_[handle];
    chunk.requested = requested;
    unpoison(chunk.data, requested);
    statistics_.requested += requested;
    statistics_.allocated += chunk.size;
    ++statistics_.live_blocks;
    return {.address = chunk.address,
            .requested = requested,
            .size = chunk.size,
            .data = chunk.data,
            .handle = handle};
  }
  [[gnu::always_inline]] Handle take_back(const Block& block) {
    require_live(block);
    Chunk& chunk = chunks_[block.handle];
    statistics_.requested -= chunk.requested;
    statistics_.allocated -= chunk.size;
    --statistics_.live_blocks;
    chunk.requested = 0;
    poison(chunk.data, chunk.size);
    return block.handle;
  }

  [[gnu::always_inline]] void require_live(const Block& block) const {
    if (block.handle >= chunks_.size() || chunks_[block.handle].address != block.address ||
        chunks_[block.handle].requested != block.requested)
      throw Error(name_ + ": a block was freed that is not live");
  }

  // suspend() marks a chunk that was taken back as pending, because a stream still uses it;
  // resume() ends this.
  void suspend(Handle handle) {
    Chunk& chunk = chunks_[handle];
    chunk.requested = Chunk::kPending;
    unpoison(chunk.data, chunk.size);
    statistics_.pending += chunk.size;
  }
  void resume(Handle handle) {
    Chunk& chunk = chunks_[handle];
    chunk.requested = 0;
    poison(chunk.data, chunk.size);
    statistics_.pending -= chunk.size;
  }

  // The low part keeps `handle`; returns the rest, which is in no index yet.
  [[gnu::always_inline]] Handle split(Handle handle, Bytes size) {
    const Handle rest = chunks_.add();
    Chunk& low = chunks_[handle];
    chunks_[rest] = {.address = low.address + size,
                     .size = low.size - size,
                     .data = low.data == nullptr ? nullptr : low.data + size,
                     .previous = handle,
                     .next = low.next,
                     .segment = low.segment,
                     .tag = low.tag};
    chunks_[low.next].previous = rest;
    low.next = rest;
    low.size = size;
    ++statistics_.splits;
    return rest;
  }
  // Merges with the following neighbour, which must be in no index.
  [[gnu::always_inline]] void absorb_next(Handle handle) {
    Chunk& chunk = chunks_[handle];
    const Handle gone = chunk.next;
    chunk.size += chunks_[gone].size;
    chunk.next = chunks_[gone].next;
    chunks_[chunk.next].previous = handle;
    chunks_.drop(gone);
    ++statistics_.merges;
  }
  // Merges a free chunk with its free neighbours; `forget` removes each from its index first.
  template <typename Forget>
  Handle coalesce(Handle handle, const Forget& forget) {
    // Both are read before either is merged, so that the loads can overlap.
    const Handle next = chunks_[handle].next;
    const Handle previous = chunks_[handle].previous;
    const bool joins_next = is_free(next);
    const bool joins_previous = is_free(previous);
    if (joins_next) {
      forget(next);
      absorb_next(handle);
    }
    if (joins_previous) {
      forget(previous);
      absorb_next(previous);
      handle = previous;
    }
    return handle;
  }
  bool is_free(Handle handle) const { return !chunks_[handle].in_use(); }

  // Allocates a segment as a single chunk; kNone when the device is out of memory.
  Handle add_segment(Bytes bytes);
  // `whole` must be the only chunk of its segment, free and in no index.
  void free_segment(Handle whole);
  // The free chunks that are whole segments, in order of their allocation.
  std::vector<Handle> idle_segments() const;
  const Segment& segment_of(Handle handle) const {
    return segments_[chunks_[handle].segment].segment;
  }

  // For memory that does not come as segments: chunks over mapped address space.
  Handle add_chunk(const Chunk& chunk) {
    const Handle handle = chunks_.add();
    chunks_[handle] = chunk;
    return handle;
  }
  void drop_chunk(Handle handle) { chunks_.drop(handle); }
  void count_held(Bytes bytes, Bytes charged);
  void count_given_back(Bytes bytes, Bytes charged);

  [[noreturn]] void throw_out_of_memory(Bytes bytes) const;

  DeviceMemory& memory_;

 private:
  struct HeldSegment {
    Segment segment;       // size 0 = slot not in use
    Handle first = kNone;  // keeps its handle through splits and merges
  };

  std::string name_;
  AllocatorStatistics statistics_;
  Bytes held_ = 0;  // Σ usable bytes of segments
  Chunks chunks_;
  std::vector<HeldSegment> segments_;
  std::vector<std::uint32_t> unused_segments_;
};

}  // namespace headroom
