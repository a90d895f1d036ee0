// Memory of one device, as an allocator strategy sees it: segments taken and given back, a hard
// capacity counted in granules, and logical addresses handed out in allocation order, so that
// ties broken by address fall the same way on every device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/base/units.h"

namespace headroom {

class TraceRecorder;

using Address = std::uint64_t;

// Segments start at multiples of this, in logical address and (where the system has large pages)
// in data.
inline constexpr Bytes kSegmentAlignment = 2 * kMiB;

struct Segment {
  std::uint32_t id = 0;       // 1, 2, … in order of allocation
  Address address = 0;        // logical
  Bytes size = 0;             // usable: what was asked for
  Bytes charged = 0;          // taken from the capacity: size in whole granules
  std::byte* data = nullptr;  // null on meta
};

struct DeviceCounters {
  std::uint64_t segment_allocations = 0;
  std::uint64_t segment_frees = 0;
  std::uint64_t failed_allocations = 0;
  std::uint64_t allocation_ns = 0;  // time spent inside commit and release
};

class DeviceMemory {
 public:
  // The capacity is counted in whole granules: what is left over is not usable.
  DeviceMemory(Bytes capacity, Bytes granule);
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Throws OutOfMemory when the capacity would be passed, DeviceError when the system refuses; a
  // failed request changes nothing. Bytes between size and charged are poisoned.
  Segment allocate(Bytes bytes);
  void free(const Segment& segment);

  Bytes capacity() const { return capacity_; }
  Bytes granule() const { return granule_; }
  Bytes reserved() const { return reserved_; }  // charged now
  Bytes available() const { return capacity_ - reserved_; }
  const DeviceCounters& counters() const { return counters_; }

  // Segment events go to this recorder from now on (null: nowhere).
  void record_into(TraceRecorder* recorder) { recorder_ = recorder; }

 protected:
  // Pages committed and populated; null on devices without memory.
  virtual std::byte* commit(Bytes bytes) = 0;
  virtual void release(std::byte* data, Bytes bytes) = 0;

 private:
  Bytes capacity_;
  Bytes granule_;
  Bytes reserved_ = 0;
  Address next_address_;
  std::uint32_t next_segment_ = 1;
  DeviceCounters counters_;
  TraceRecorder* recorder_ = nullptr;
};

}  // namespace headroom
