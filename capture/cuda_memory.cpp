#include "capture/cuda_memory.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "harness/base/error.h"

namespace headroom {
namespace {

constexpr int kSuccess = 0;
constexpr int kOutOfMemory = 2;  // in the runtime and in the driver

// CUDA's structures for memory on one device, as its headers lay them out.
struct Location {
  int type = 1;  // a device
  int device = 0;
};
struct PageKind {
  int type = 1;  // pinned
  int handle_types = 0;
  Location location;
  void* win32_data = nullptr;
  unsigned char flags[8] = {};
};
struct Access {
  Location location;
  int flags = 3;  // read and write
};

template <typename... Arguments>
void call(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(RTLD_DEFAULT, name));
  if (function == nullptr) throw DeviceError(fmt::format("no library of CUDA has {}", name));
  const int result = function(arguments...);
  if (result == kOutOfMemory) throw OutOfMemory(fmt::format("{} was refused", name));
  if (result != kSuccess) throw DeviceError(fmt::format("{} failed with {}", name, result));
}

Bytes card_bytes() {
  std::size_t free = 0, total = 0;
  call("cudaMemGetInfo", &free, &total);
  return total;
}

std::uintptr_t number(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

}  // namespace

std::byte* CudaPages::reserve(Bytes bytes) {
  std::uintptr_t address = 0;
  call("cuMemAddressReserve", &address, bytes, std::size_t{0}, std::uintptr_t{0}, 0ULL);
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}
void CudaPages::release(std::byte* addresses, Bytes bytes) {
  call("cuMemAddressFree", number(addresses), bytes);
}
PageDriver::Page CudaPages::create(Bytes size) {
  const PageKind kind{.location = {.device = device_}};
  unsigned long long page = 0;
  call("cuMemCreate", &page, size, &kind, 0ULL);
  return page;
}
void CudaPages::destroy(Page page) { call("cuMemRelease", page); }
void CudaPages::map(std::byte* at, Bytes size, Page page) {
  call("cuMemMap", number(at), size, std::size_t{0}, page, 0ULL);
}
void CudaPages::unmap(std::byte* at, Bytes size) { call("cuMemUnmap", number(at), size); }
void CudaPages::allow_access(std::byte* at, Bytes bytes) {
  const Access access{.location = {.device = device_}};
  call("cuMemSetAccess", number(at), bytes, &access, std::size_t{1});
}

CudaMemory::CudaMemory(int device) : DeviceMemory(card_bytes(), kBlockAlignment), driver_(device) {}

std::byte* CudaMemory::commit(Bytes bytes) {
  void* data = nullptr;
  call("cudaMalloc", &data, bytes);
  return static_cast<std::byte*>(data);
}
void CudaMemory::release(std::byte* data, Bytes) { call("cudaFree", static_cast<void*>(data)); }

}  // namespace headroom
