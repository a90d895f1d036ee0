// The driver's virtual memory: address ranges separate from the physical pages behind them. The
// functions are looked up through the runtime, because a module linked to libcuda would not load on
// a machine without a driver.
#pragma once

#include <cudaTypedefs.h>

#include <functional>

#include "harness/device/cuda/mapped_pages.h"
#include "harness/device/cuda/module/check.h"

namespace headroom::cuda {

class DriverPages final : public PageDriver {
 public:
  // Uses the current GPU. `wait` implements PageDriver::wait. Throws DeviceError when the driver
  // lacks one of the functions; every driver since CUDA 10.2 has them.
  explicit DriverPages(std::function<void()> wait);

  // Size of a physical page; every size below is a multiple of it. 2 MiB on today's GPUs.
  Bytes granularity() const;
  // Whether this GPU supports virtual memory management by programs.
  bool is_supported() const;

  std::byte* reserve(Bytes bytes, Bytes alignment) const;
  void release(std::byte* addresses, Bytes bytes) const;

  Page create(Bytes size) override;
  void destroy(Page page) override;
  void map(std::byte* at, Bytes size, Page page) override;
  void unmap(std::byte* at, Bytes size) override;
  void allow_access(std::byte* at, Bytes bytes) override;
  void wait() override { wait_(); }

 private:
  void require_success(CUresult result, Doing doing) const;

  std::function<void()> wait_;
  CUmemAllocationProp_v1 kind_{};  // plain memory of this GPU
  PFN_cuDeviceGetAttribute_v2000 device_attribute_;
  PFN_cuGetErrorName_v6000 error_name_;
  PFN_cuMemGetAllocationGranularity_v10020 granularity_;
  PFN_cuMemAddressReserve_v10020 reserve_;
  PFN_cuMemAddressFree_v10020 release_;
  PFN_cuMemCreate_v10020 create_;
  PFN_cuMemRelease_v10020 destroy_;
  PFN_cuMemMap_v10020 map_;
  PFN_cuMemUnmap_v10020 unmap_;
  PFN_cuMemSetAccess_v10020 set_access_;
};

}  // namespace headroom::cuda
