#include "harness/device/cuda/module/memory.h"

#include <fmt/format.h>

#include <utility>

#include "harness/base/error.h"
#include "harness/device/cuda/module/check.h"
#include "harness/device/cuda/module/context.h"
#include "harness/device/cuda/module/stream_pool.h"

namespace headroom::cuda {

Bytes free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  require_success(cudaMemGetInfo(&free, &total), "to tell how much memory is free");
  return free;
}

namespace {

Bytes total_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  require_success(cudaMemGetInfo(&free, &total), "to tell how much memory it has");
  return total;
}

Bytes capacity_or_default(Bytes asked) {
  const Bytes free = free_bytes();
  if (asked > free)
    throw NotSupported(
        fmt::format("cuda(capacity={}): the GPU has {} free; ask for less, or leave "
                    "the capacity out to take that less {}",
                    asked, format_bytes(free), format_bytes(kReserve)));
  if (asked != 0) return asked;
  if (free <= kReserve)
    throw DeviceError(
        fmt::format("the GPU has {} free, of which {} are left to the driver and the "
                    "libraries; stop what else uses it, or name a capacity",
                    format_bytes(free), format_bytes(kReserve)));
  return free - kReserve;
}

Bytes at_least_a_page(Bytes capacity, Bytes page) {
  if (capacity < page)
    throw InputError(
        fmt::format("cuda(capacity={}): the GPU hands out memory by {}; ask for at "
                    "least that",
                    capacity, format_bytes(page)));
  return capacity;
}

}  // namespace

CudaMemory::CudaMemory(Bytes capacity, const Context& context)
    : CudaMemory(capacity, DriverPages([&context] {
                   require_success(cudaStreamSynchronize(context.stream()), "to finish");
                 }),
                 context) {}

CudaMemory::CudaMemory(Bytes capacity, DriverPages driver, const Context& context)
    : DeviceMemory(at_least_a_page(capacity_or_default(capacity), driver.granularity()),
                   driver.granularity()),
      context_(context),
      total_(capacity == 0 ? total_bytes() : this->capacity()),
      driver_(std::move(driver)),
      has_virtual_memory_(driver_.is_supported()),
      pages_(driver_) {}

std::unique_ptr<StreamPool> CudaMemory::make_stream_pool(const StreamPoolOptions& options) {
  return cuda::make_stream_pool(options, capacity(), context_);
}

std::byte* CudaMemory::reserve_addresses(Bytes bytes) {
  if (!has_virtual_memory_) return DeviceMemory::reserve_addresses(bytes);  // always throws
  return driver_.reserve(bytes, page());
}

std::byte* CudaMemory::commit(Bytes bytes) {
  void* data = nullptr;
  require_success(cudaMalloc(&data, bytes), "memory");
  return static_cast<std::byte*>(data);
}

// An error here comes from an earlier kernel; the next synchronisation reports it.
void CudaMemory::release(std::byte* data, Bytes) { cudaFree(data); }

}  // namespace headroom::cuda
