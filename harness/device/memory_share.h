// A part of a device's memory with its own capacity. Several shares act as several logical devices
// on one physical device, each for an allocator that is unaware of the others.
#pragma once

#include "harness/device/device_memory.h"

namespace headroom {

// Every allocation is made from `whole`, which charges, numbers and records it as its own;
// addresses are therefore unique across shares. The capacities may add up to more than `whole` has;
// then its allocations fail.
class MemoryShare final : public DeviceMemory {
 public:
  // `whole` must outlive the share.
  MemoryShare(DeviceMemory& whole, Bytes capacity);

  // Nothing is allocated beyond `limit` from now on; memory held already stays.
  void limit_to(Bytes limit);
  Bytes limit() const { return limit_; }

  bool is_host_accessible() const override { return whole_.is_host_accessible(); }
  bool has_virtual_memory() const override { return whole_.has_virtual_memory(); }
  Bytes available() const override;

  Segment allocate(Bytes bytes) override;
  void free(const Segment& segment) override;
  using DeviceMemory::reserve;
  Reservation reserve(Bytes bytes, Bytes unit) override;
  void map(const Reservation& place, Bytes offset, Bytes bytes) override;
  void unmap(const Reservation& place, Bytes offset, Bytes bytes) override;
  void move(const Reservation& from, Bytes from_offset, const Reservation& to, Bytes to_offset,
            Bytes bytes) override;
  void unreserve(const Reservation& place) override;
  // These apply to `whole`: the driver's pools know nothing of shares.
  std::unique_ptr<StreamPool> make_stream_pool(const StreamPoolOptions& options) override;
  Segment adopt(std::byte* data, Bytes bytes) override;
  void disown(const Segment& segment) override;

 private:
  DeviceMemory& whole_;
  Bytes limit_;
};

}  // namespace headroom
