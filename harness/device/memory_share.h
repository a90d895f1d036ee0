// A part of a device's memory with a capacity of its own: several of them are several logical
// devices on one physical one, each for an allocator that knows nothing of the others.
#pragma once

#include "harness/device/device_memory.h"

namespace headroom {

// Everything is taken from `whole`, which charges, numbers and records it as its own; addresses are
// therefore unique among all shares. Shares may promise more than there is: then whole refuses.
class MemoryShare final : public DeviceMemory {
 public:
  // `whole` must outlive the share.
  MemoryShare(DeviceMemory& whole, Bytes capacity);

  // From now on nothing is taken beyond `limit`; what is held already stays.
  void limit_to(Bytes limit);
  Bytes limit() const { return limit_; }

  bool is_host_accessible() const override { return whole_.is_host_accessible(); }
  bool has_virtual_memory() const override { return whole_.has_virtual_memory(); }
  Bytes available() const override;

  Segment allocate(Bytes bytes) override;
  void free(const Segment& segment) override;
  Reservation reserve(Bytes bytes) override;
  void map(const Reservation& place, Bytes offset, Bytes bytes) override;
  void unmap(const Reservation& place, Bytes offset, Bytes bytes) override;
  void move(const Reservation& from, Bytes from_offset, const Reservation& to, Bytes to_offset,
            Bytes bytes) override;
  void unreserve(const Reservation& place) override;
  // Of the whole: the driver's pools know nothing of shares.
  std::unique_ptr<StreamPool> make_stream_pool(const StreamPoolOptions& options) override;
  Segment adopt(std::byte* data, Bytes bytes) override;
  void disown(const Segment& segment) override;

 private:
  DeviceMemory& whole_;
  Bytes limit_;
};

}  // namespace headroom
