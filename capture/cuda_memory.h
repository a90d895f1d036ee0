// Device memory of the GPU that this process uses, through the CUDA functions that PyTorch has
// loaded. Under `headroom gpu` these are the stand-ins.
#pragma once

#include "harness/device/cuda/mapped_pages.h"
#include "harness/device/device_memory.h"

namespace headroom {

// The functions of CUDA's driver for virtual memory, for one device.
class CudaPages final : public PageDriver {
 public:
  explicit CudaPages(int device) : device_(device) {}

  std::byte* reserve(Bytes bytes);
  void release(std::byte* addresses, Bytes bytes);

  Page create(Bytes size) override;
  void destroy(Page page) override;
  void map(std::byte* at, Bytes size, Page page) override;
  void unmap(std::byte* at, Bytes size) override;
  void allow_access(std::byte* at, Bytes bytes) override;
  void wait() override {}  // the work of a virtual GPU is done as soon as it is submitted

 private:
  int device_;
};

// The driver alone decides how much of the card a segment takes, so this counts units of 256 bytes.
class CudaMemory final : public DeviceMemory {
 public:
  // `device` must be this thread's current device.
  explicit CudaMemory(int device);

  bool has_virtual_memory() const override { return true; }

 private:
  std::byte* commit(Bytes bytes) override;
  void release(std::byte* data, Bytes bytes) override;

  std::byte* reserve_addresses(Bytes bytes) override { return driver_.reserve(bytes); }
  void map_pages(std::byte* data, Bytes bytes, Bytes unit) override {
    pages_.map(data, bytes, unit);
  }
  void unmap_pages(std::byte* data, Bytes bytes) override { pages_.unmap(data, bytes); }
  void move_pages(std::byte* from, std::byte* to, Bytes bytes) override {
    pages_.move(from, to, bytes);
  }
  void release_addresses(std::byte* data, Bytes bytes) override { driver_.release(data, bytes); }

  CudaPages driver_;
  MappedPages pages_{driver_};
};

}  // namespace headroom
