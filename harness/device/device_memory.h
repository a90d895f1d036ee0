// Memory of one device as an allocator strategy sees it: segments to allocate and free, on some
// devices pages to map into reserved addresses, and a hard capacity counted in granules. Logical
// addresses are assigned in allocation order, so that ties broken by address are decided alike on
// every device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/base/units.h"
#include "harness/device/stream_pool.h"

namespace headroom {

class TraceRecorder;
enum class EventKind : std::uint8_t;

// Segments are aligned to this in their logical addresses and, where the system has large pages, in
// `data`.
inline constexpr Bytes kSegmentAlignment = 2 * kMiB;

// Blocks are aligned to this in their logical addresses and in `data`.
inline constexpr Bytes kBlockAlignment = 256;

struct Segment {
  std::uint32_t id = 0;       // 1, 2, … in order of allocation
  Address address = 0;        // logical
  Bytes size = 0;             // usable: the requested size
  Bytes charged = 0;          // counted against the capacity: size in whole granules
  std::byte* data = nullptr;  // null on meta
};

// A range of addresses without memory until pages are mapped into it.
struct Reservation {
  std::uint32_t id = 0;       // numbered together with segments
  Address address = 0;        // logical
  Bytes size = 0;             // whole units
  Bytes unit = 0;             // what is mapped, unmapped and moved at once
  std::byte* data = nullptr;  // null on meta
};

struct DeviceCounters {
  std::uint64_t segment_allocations = 0;
  std::uint64_t segment_frees = 0;
  std::uint64_t maps = 0;  // number of calls, however many pages each
  std::uint64_t unmaps = 0;
  std::uint64_t moves = 0;
  std::uint64_t failed_allocations = 0;
  std::uint64_t driver_refusals = 0;  // of those, requests that the capacity had room for
  std::uint64_t allocation_ns = 0;    // time spent inside commit and release
};

class DeviceMemory {
 public:
  // The capacity is rounded down to whole granules.
  DeviceMemory(Bytes capacity, Bytes granule);
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Throws OutOfMemory when the capacity would be exceeded or the driver has no memory left,
  // DeviceError when the system fails; a failed request changes nothing. Bytes between size and
  // charged are poisoned.
  virtual Segment allocate(Bytes bytes);
  virtual void free(const Segment& segment);

  // Whether the CPU may read and write at `data`.
  virtual bool is_host_accessible() const { return false; }

  // Virtual memory, on devices that support it (elsewhere reserve throws NotSupported). Offsets and
  // sizes are whole units of the reservation, which are whole pages: a driver takes one call for
  // each unit. Reserved addresses are free of charge, mapped pages are charged. Moving pages,
  // between reservations of one unit, keeps their contents and their charge. Throws Error for pages
  // that are already mapped, or not mapped, and on unreserve when pages are still mapped.
  virtual bool has_virtual_memory() const { return false; }
  Bytes page() const { return align_up(kSegmentAlignment, granule_); }
  virtual Reservation reserve(Bytes bytes, Bytes unit);
  Reservation reserve(Bytes bytes) { return reserve(bytes, page()); }
  virtual void map(const Reservation& place, Bytes offset, Bytes bytes);  // throws as allocate does
  virtual void unmap(const Reservation& place, Bytes offset, Bytes bytes);
  virtual void move(const Reservation& from, Bytes from_offset, const Reservation& to,
                    Bytes to_offset, Bytes bytes);
  virtual void unreserve(const Reservation& place);

  // Creates a pool of the driver's own allocator, limited to the capacity; null on devices whose
  // driver has none.
  virtual std::unique_ptr<StreamPool> make_stream_pool(const StreamPoolOptions&) { return nullptr; }
  // Registers memory that such a pool allocated by itself: it is charged, numbered and recorded as
  // a segment. It never fails, because the pool already holds the memory.
  virtual Segment adopt(std::byte* data, Bytes bytes);
  virtual void disown(const Segment& segment);

  Bytes capacity() const { return capacity_; }
  // The bytes that a `fraction` setting refers to. They exceed the capacity if no capacity was
  // given and part of the device is left to other processes.
  virtual Bytes total() const { return capacity_; }
  Bytes granule() const { return granule_; }
  Bytes reserved() const { return reserved_; }  // charged now
  virtual Bytes available() const { return capacity_ - reserved_; }
  const DeviceCounters& counters() const { return counters_; }
  // Says that the driver had less than the capacity, for the report of an out-of-memory error;
  // empty when it never refused.
  std::string driver_refusals() const;

  // Sends later segment events to this recorder (null: nowhere).
  void record_into(TraceRecorder* recorder) { recorder_ = recorder; }

 protected:
  // Returns committed and populated pages; null on devices without memory of their own. This and
  // map_pages throw OutOfMemory when the driver has less memory than the capacity promises.
  virtual std::byte* commit(Bytes) { return nullptr; }
  virtual void release(std::byte*, Bytes) {}

  // Implementations of virtual memory; their arguments have been checked.
  virtual std::byte* reserve_addresses(Bytes bytes);
  virtual void map_pages(std::byte*, Bytes, Bytes /*unit*/) {}
  virtual void unmap_pages(std::byte*, Bytes) {}
  virtual void move_pages(std::byte* /*from*/, std::byte* /*to*/, Bytes) {}
  virtual void release_addresses(std::byte*, Bytes) {}

  // Throws OutOfMemory when that many more bytes cannot be charged.
  void require_available(Bytes bytes);

  Bytes reserved_ = 0;
  DeviceCounters counters_;

 private:
  // Calls the driver, measures the time and counts its refusals for lack of memory.
  template <typename Call>
  void ask_driver(Call call);
  void set_mapped(const Reservation& place, Bytes offset, Bytes bytes, bool mapped);
  void record_segment(EventKind kind, const Segment& segment) const;
  void record_pages(EventKind kind, const Reservation& place, Bytes offset, Bytes bytes) const;

  Bytes capacity_;
  Bytes granule_;
  Address next_address_;
  std::uint32_t next_segment_ = 1;
  TraceRecorder* recorder_ = nullptr;
  std::map<std::uint32_t, std::vector<bool>> mapped_;  // which units of each reservation are mapped
};

}  // namespace headroom
