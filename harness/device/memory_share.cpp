#include "harness/device/memory_share.h"

#include <algorithm>

namespace headroom {

MemoryShare::MemoryShare(DeviceMemory& whole, Bytes capacity)
    : DeviceMemory(capacity, whole.granule()), whole_(whole), limit_(this->capacity()) {}

void MemoryShare::limit_to(Bytes limit) { limit_ = std::min(limit, capacity()); }

Bytes MemoryShare::available() const {
  return std::min(limit_ - std::min(limit_, reserved_), whole_.available());
}

Segment MemoryShare::allocate(Bytes bytes) {
  require_available(bytes);
  const Segment segment = whole_.allocate(bytes);
  reserved_ += segment.charged;
  ++counters_.segment_allocations;
  return segment;
}

void MemoryShare::free(const Segment& segment) {
  whole_.free(segment);
  reserved_ -= segment.charged;
  ++counters_.segment_frees;
}

Reservation MemoryShare::reserve(Bytes bytes, Bytes unit) { return whole_.reserve(bytes, unit); }
void MemoryShare::unreserve(const Reservation& place) { whole_.unreserve(place); }

void MemoryShare::map(const Reservation& place, Bytes offset, Bytes bytes) {
  require_available(bytes);
  whole_.map(place, offset, bytes);
  reserved_ += bytes;
  ++counters_.maps;
}

void MemoryShare::unmap(const Reservation& place, Bytes offset, Bytes bytes) {
  whole_.unmap(place, offset, bytes);
  reserved_ -= bytes;
  ++counters_.unmaps;
}

void MemoryShare::move(const Reservation& from, Bytes from_offset, const Reservation& to,
                       Bytes to_offset, Bytes bytes) {
  whole_.move(from, from_offset, to, to_offset, bytes);
  ++counters_.moves;
}

std::unique_ptr<StreamPool> MemoryShare::make_stream_pool(const StreamPoolOptions& options) {
  return whole_.make_stream_pool(options);
}

Segment MemoryShare::adopt(std::byte* data, Bytes bytes) {
  const Segment segment = whole_.adopt(data, bytes);
  reserved_ += segment.charged;
  ++counters_.segment_allocations;
  return segment;
}

void MemoryShare::disown(const Segment& segment) {
  whole_.disown(segment);
  reserved_ -= segment.charged;
  ++counters_.segment_frees;
}

}  // namespace headroom
