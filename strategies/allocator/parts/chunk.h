// Chunks: what segments are cut into, each a block or free. Named by handles, which stay while the
// table grows and serve again when a chunk has ceased to be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/device/device_memory.h"

namespace headroom {

using ChunkHandle = std::uint32_t;
// Stands for no chunk, and yet names one, in use by nobody and larger than all others: what looks
// at or writes to a neighbour that may be none needs no test.
inline constexpr ChunkHandle kNoChunk = 0;

// In one line of the cache, its place in an index included.
struct alignas(64) Chunk {
  static constexpr Bytes kPending = ~Bytes{0};  // freed, and still in use by a stream

  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;              // 0 = not in use; kPending
  std::byte* data = nullptr;        // null on meta
  ChunkHandle previous = kNoChunk;  // neighbours by address; in the same segment only
  ChunkHandle next = kNoChunk;
  std::uint32_t segment = 0;  // the segment it is cut from
  std::uint32_t tag = 0;      // the strategy's own; the rest of a split inherits it
  // Of a list of free chunks, for the index that keeps it.
  ChunkHandle previous_in_list = kNoChunk;
  ChunkHandle next_in_list = kNoChunk;

  bool in_use() const { return requested > 0; }
  bool is_whole_segment() const { return previous == kNoChunk && next == kNoChunk; }
};

class Chunks {
 public:
  Chunk& operator[](ChunkHandle handle) { return all_[handle]; }
  const Chunk& operator[](ChunkHandle handle) const { return all_[handle]; }
  std::size_t size() const { return all_.size(); }

  // The chunk itself is still to be written.
  ChunkHandle add() {
    if (unused_ == kNoChunk) grow();
    const ChunkHandle handle = unused_;
    unused_ = all_[handle].next;
    return handle;
  }
  void drop(ChunkHandle handle) {
    all_[handle].next = unused_;
    unused_ = handle;
  }

 private:
  // Rare, and apart from the rest so that what is frequent needs few registers.
  [[gnu::noinline]] void grow() {
    unused_ = static_cast<ChunkHandle>(all_.size());
    all_.emplace_back();
  }

  std::vector<Chunk> all_{
      {.address = ~Address{0}, .size = ~Bytes{0}, .requested = Chunk::kPending}};
  ChunkHandle unused_ = kNoChunk;  // the last given up, linked by `next`
};

}  // namespace headroom
