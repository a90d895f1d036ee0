// Chunks: the pieces into which segments are cut, each a live block or free. Handles identify them;
// they stay valid while the table grows and are reused after a chunk is removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "harness/device/device_memory.h"

namespace headroom {

using ChunkHandle = std::uint32_t;
// Stands for no chunk, but refers to a real entry, which counts as in use and is larger than all
// others: code that reads or writes a neighbour needs no test for its existence.
inline constexpr ChunkHandle kNoChunk = 0;

// Fits in one cache line, including its links in an index.
struct alignas(64) Chunk {
  static constexpr Bytes kPending = ~Bytes{0};  // freed, and still in use by a stream

  Address address = 0;
  Bytes size = 0;
  Bytes requested = 0;              // 0 = not in use; kPending
  std::byte* data = nullptr;        // null on meta
  ChunkHandle previous = kNoChunk;  // neighbours by address; in the same segment only
  ChunkHandle next = kNoChunk;
  std::uint32_t segment = 0;  // the segment it is cut from
  std::uint32_t tag = 0;      // free for the strategy's use; the rest of a split inherits it
  // The neighbours in a list of free chunks, for the index.
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

  // Returns a new handle; the caller must write the chunk.
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
  // The rare path is not inlined, so that the frequent one needs few registers.
  [[gnu::noinline]] void grow() {
    unused_ = static_cast<ChunkHandle>(all_.size());
    all_.emplace_back();
  }

  std::vector<Chunk> all_{
      {.address = ~Address{0}, .size = ~Bytes{0}, .requested = Chunk::kPending}};
  ChunkHandle unused_ = kNoChunk;  // the handle last removed, linked by `next`
};

}  // namespace headroom
