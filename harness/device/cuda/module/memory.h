// The GPU's memory as allocator strategies see it: plain cudaMalloc and the driver's virtual
// memory, never managed memory, which would move pages behind the strategies' back.
#pragma once

#include "harness/device/cuda/module/driver_pages.h"
#include "harness/device/device_memory.h"

namespace headroom::cuda {

// Free memory of the GPU, whichever process holds the rest.
Bytes free_bytes();

class Context;

// Memory left to the driver and the libraries when no capacity is given, because they load kernels
// during training. It equals what TensorFlow leaves on GPUs since Hopper (MinSystemMemory in its
// gpu_device.cc), so that a strategy that takes the whole capacity at once does not starve them.
inline constexpr Bytes kReserve = 1800 * kMiB;

class CudaMemory final : public DeviceMemory {
 public:
  // A `capacity` of 0 means the free memory less kReserve. Throws InputError when more than the
  // free memory is requested. The context already exists, so its own memory does not count as free;
  // it must outlive this object.
  CudaMemory(Bytes capacity, const Context& context);

  // The memory of the whole GPU if no capacity was given, as for the frameworks' own fractions.
  Bytes total() const override { return total_; }
  bool has_virtual_memory() const override { return has_virtual_memory_; }
  std::unique_ptr<StreamPool> make_stream_pool(const StreamPoolOptions& options) override;

 protected:
  std::byte* commit(Bytes bytes) override;
  void release(std::byte* data, Bytes bytes) override;

  std::byte* reserve_addresses(Bytes bytes) override;
  void map_pages(std::byte* data, Bytes bytes, Bytes unit) override {
    pages_.map(data, bytes, unit);
  }
  void unmap_pages(std::byte* data, Bytes bytes) override { pages_.unmap(data, bytes); }
  void move_pages(std::byte* from, std::byte* to, Bytes bytes) override {
    pages_.move(from, to, bytes);
  }
  void release_addresses(std::byte* data, Bytes bytes) override { driver_.release(data, bytes); }

 private:
  CudaMemory(Bytes capacity, DriverPages driver, const Context& context);

  const Context& context_;
  Bytes total_;
  DriverPages driver_;
  bool has_virtual_memory_;
  MappedPages pages_;
};

}  // namespace headroom::cuda
