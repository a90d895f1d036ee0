// Device memory of the host device: anonymous pages, committed and populated when a segment is
// allocated and returned to the system when it is freed.
#pragma once

#include "harness/device/device_memory.h"

namespace headroom {

// The page size of the machines Headroom runs on, and so the unit in which the kernel charges a
// process. Larger granules would charge small segments for pages they do not use.
inline constexpr Bytes kHostGranule = 4 * kKiB;

class HostMemory final : public DeviceMemory {
 public:
  explicit HostMemory(Bytes capacity) : DeviceMemory(capacity, kHostGranule) {}

  bool is_host_accessible() const override { return true; }
  bool has_virtual_memory() const override { return true; }

 private:
  // Segments of 2 MiB and more start on a 2 MiB boundary and ask for huge pages: populating is
  // ten times faster. Throws DeviceError with the system's reason.
  std::byte* commit(Bytes bytes) override;
  void release(std::byte* data, Bytes bytes) override;

  // Reserved addresses are inaccessible. Moving a page changes the kernel's page tables and copies
  // no bytes.
  std::byte* reserve_addresses(Bytes bytes) override;
  void map_pages(std::byte* data, Bytes bytes, Bytes unit) override;
  void unmap_pages(std::byte* data, Bytes bytes) override;
  void move_pages(std::byte* from, std::byte* to, Bytes bytes) override;
  void release_addresses(std::byte* data, Bytes bytes) override;
};

// The capacity of a host device whose spec names none: half of the memory that the kernel reports
// as available. The other half is left to libraries, the page cache and other programs, because a
// preallocating strategy takes its whole capacity.
Bytes default_host_capacity();

// The machine's total memory.
Bytes physical_memory();

}  // namespace headroom
