// The growth rule for strategies without their own: a region has a fixed size, or the size of a
// larger request; it is smaller when the device has less; idle regions are freed before a request
// fails.
#pragma once

#include <algorithm>

#include "strategies/allocator/parts/chunked_allocator.h"

namespace headroom {

inline constexpr Bytes kRegion = 64 * kMiB;

class GrowingRegions : public ChunkedAllocator {
 public:
  void trim() override {
    for (const Handle region : idle_segments()) {
      forget(region);
      free_segment(region);
    }
  }

 protected:
  GrowingRegions(const Spec& spec, DeviceMemory& memory)
      : ChunkedAllocator(spec.to_string(), memory), region_(spec.bytes("region", kRegion)) {
    if (region_ < kBlockAlignment)
      throw InputError(spec.to_string() + ": region must be at least 256 bytes");
  }

  // Removes a free chunk from the strategy's index.
  virtual void forget(Handle handle) = 0;

  Bytes region() const { return region_; }

  // Adds a region of at least `size`, not yet in the index; kNone if the device is full. Region
  // sizes are `size` times a power of two, so that powers of two stay powers of two.
  Handle add_region(Bytes size) {
    if (const Handle region = try_region(size); region != kNone) return region;
    trim();
    return try_region(size);
  }

 private:
  Handle try_region(Bytes size) {
    Bytes wanted = size;
    while (wanted < region_) wanted *= 2;
    for (; wanted >= size; wanted /= 2) {
      if (const Handle region = add_segment(wanted); region != kNone) return region;
    }
    return kNone;
  }

  Bytes region_;
};

}  // namespace headroom
