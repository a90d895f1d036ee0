// Device memory of the host: anonymous pages, committed and populated when a segment is taken
// and given back to the system when it is freed. Used by the host device.
#pragma once

#include "harness/device/device_memory.h"

namespace headroom {

// The page size of the machines Headroom runs on, and so the unit in which the kernel charges a
// process. Larger granules would charge small segments for pages nobody gets.
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

  // Reserved addresses are inaccessible; moving a page changes the kernel's tables, not its bytes.
  std::byte* reserve_addresses(Bytes bytes) override;
  void map_pages(std::byte* data, Bytes bytes) override;
  void unmap_pages(std::byte* data, Bytes bytes) override;
  void move_pages(std::byte* from, std::byte* to, Bytes bytes) override;
  void release_addresses(std::byte* data, Bytes bytes) override;
};

// What a host device gets when its spec names no capacity: half of what the kernel says is
// available now. The other half is left to libraries, the page cache and the other programs of a
// shared machine, because a preallocating strategy takes all it is given.
Bytes default_host_capacity();

// What the machine has in all.
Bytes physical_memory();

}  // namespace headroom
