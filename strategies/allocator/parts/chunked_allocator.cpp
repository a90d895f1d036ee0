#include "strategies/allocator/parts/chunked_allocator.h"

#include <algorithm>

namespace headroom {

ChunkedAllocator::~ChunkedAllocator() {
  for (const HeldSegment& held : segments_) {
    if (held.segment.size > 0) memory_.free(held.segment);
  }
}

ChunkedAllocator::Handle ChunkedAllocator::add_segment(Bytes bytes) {
  Segment segment;
  try {
    segment = memory_.allocate(bytes);
  } catch (const OutOfMemory&) {
    return kNone;
  }
  if (unused_segments_.empty()) {
    unused_segments_.push_back(static_cast<std::uint32_t>(segments_.size()));
    segments_.emplace_back();
  }
  const std::uint32_t slot = unused_segments_.back();
  unused_segments_.pop_back();
  poison(segment.data, segment.size);
  count_held(segment.size, segment.charged);
  ++statistics_.segments;
  const Handle whole = add_chunk(
      {.address = segment.address, .size = segment.size, .data = segment.data, .segment = slot});
  segments_[slot] = {segment, whole};
  return whole;
}

void ChunkedAllocator::free_segment(Handle whole) {
  const std::uint32_t slot = chunks_[whole].segment;
  const Segment segment = segments_[slot].segment;
  memory_.free(segment);
  count_given_back(segment.size, segment.charged);
  --statistics_.segments;
  segments_[slot] = {};
  unused_segments_.push_back(slot);
  chunks_[whole] = {};
  drop_chunk(whole);
}

std::vector<ChunkedAllocator::Handle> ChunkedAllocator::idle_segments() const {
  std::vector<Handle> idle;
  for (const HeldSegment& held : segments_) {
    if (held.segment.size == 0) continue;
    const Chunk& chunk = chunks_[held.first];
    if (!chunk.in_use() && chunk.is_whole_segment()) idle.push_back(held.first);
  }
  std::sort(idle.begin(), idle.end(),
            [this](Handle a, Handle b) { return segment_of(a).id < segment_of(b).id; });
  return idle;
}

void ChunkedAllocator::count_held(Bytes bytes, Bytes charged) {
  held_ += bytes;
  statistics_.reserved += charged;
}

void ChunkedAllocator::count_given_back(Bytes bytes, Bytes charged) {
  held_ -= bytes;
  statistics_.reserved -= charged;
}

void ChunkedAllocator::throw_out_of_memory(Bytes bytes) const {
  throw OutOfMemory({.requested_bytes = bytes,
                     .capacity_bytes = memory_.capacity(),
                     .reserved_bytes = statistics_.reserved,
                     .allocated_bytes = statistics_.allocated,
                     .free_bytes = held_ - statistics_.allocated - statistics_.pending,
                     .largest_free_bytes = largest_free(),
                     .allocator = name_});
}

}  // namespace headroom
