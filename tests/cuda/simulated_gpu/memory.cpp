#include "tests/cuda/simulated_gpu/memory.h"

#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "harness/base/units.h"
#include "tests/cuda/simulated_gpu/refusal.h"
#include "tests/cuda/simulated_gpu/streams.h"

namespace headroom::simulated_gpu {
namespace {

// Memory that the driver takes when a context is created.
constexpr std::size_t kOfContext = std::size_t{256} << 20U;
// Larger blocks hold zeros, because poisoning them would take longer than the work on them.
constexpr std::size_t kMostPoisoned = std::size_t{64} << 20U;

struct Book {
  std::map<std::byte*, std::size_t> shown;
  std::map<std::byte*, std::size_t> allocated;  // by cudaMalloc
  std::map<std::byte*, std::size_t> pinned;     // of the host
  std::size_t taken = kOfContext;
  std::optional<std::size_t> kernels;  // bytes of their code, once it is loaded
  int in_use = 0;
};

Book& book() {
  static Book one;
  return one;
}

void protect(std::byte* data, std::size_t bytes) {
  mprotect(data, bytes, book().in_use > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void protect_all() {
  for (const auto& [data, bytes] : book().shown) protect(data, bytes);
}

// Reserves whole pages for `asked` bytes.
std::byte* take_addresses(std::size_t bytes, std::size_t asked) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return nullptr;
  // Blocks are shown and hidden many times, and fewer pages make that faster.
  if (asked >= kPage) madvise(data, bytes, MADV_HUGEPAGE);
  if (asked <= kMostPoisoned) poison(data, asked);
  show(static_cast<std::byte*>(data), bytes);
  return static_cast<std::byte*>(data);
}

void give_addresses(std::byte* data, std::size_t bytes) {
  hide(data);
  munmap(data, bytes);
}

bool lies_in(const std::map<std::byte*, std::size_t>& blocks, const void* data, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(data);
  auto after = blocks.upper_bound(const_cast<std::byte*>(begin));
  if (after == blocks.begin()) return false;
  const auto& [at, size] = *--after;
  return begin + bytes <= at + size;
}

}  // namespace

MemoryInUse::MemoryInUse() {
  if (book().in_use++ == 0) protect_all();
}

MemoryInUse::~MemoryInUse() {
  if (--book().in_use == 0) protect_all();
}

void show(std::byte* data, std::size_t bytes) {
  book().shown[data] = bytes;
  protect(data, bytes);
}

void hide(std::byte* data) { book().shown.erase(data); }

// Pages that were mapped separately may be adjacent.
bool is_shown(const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  const std::byte* const end = begin + bytes;
  while (begin < end) {
    auto after = book().shown.upper_bound(const_cast<std::byte*>(begin));
    if (after == book().shown.begin()) return false;
    const auto& [at, size] = *--after;
    if (begin >= at + size) return false;
    begin = at + size;
  }
  return true;
}

void poison(void* data, std::size_t bytes) { std::memset(data, 0xFF, bytes); }

bool charge(std::size_t bytes) {
  if (bytes > free_memory() || is_refused()) return false;
  book().taken += bytes;
  return true;
}

void credit(std::size_t bytes) { book().taken -= bytes; }

std::size_t free_memory() {
  const char* const others = std::getenv("HEADROOM_SIMULATED_GPU_OTHERS_TAKE");
  const std::size_t theirs = others == nullptr ? 0 : std::strtoull(others, nullptr, 10);
  const std::size_t left = kTotal - book().taken;
  return left - std::min(left, theirs);
}

bool load_kernels() {
  if (book().kernels) return true;
  const char* const set = std::getenv("HEADROOM_SIMULATED_GPU_KERNELS_TAKE");
  const std::size_t bytes = set == nullptr ? 0 : std::strtoull(set, nullptr, 10);
  if (bytes > free_memory()) return false;
  book().taken += bytes;
  book().kernels = bytes;
  return true;
}

void unload_kernels() {
  credit(book().kernels.value_or(0));
  book().kernels.reset();
}

}  // namespace headroom::simulated_gpu

using namespace headroom::simulated_gpu;

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Lock lock;
  if (is_refused()) return refuse(cudaErrorUnknown);
  *free = free_memory();
  *total = kTotal;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  const Lock lock;
  const std::size_t charged = headroom::align_up(bytes, kPage);
  if (!charge(charged)) return refuse(cudaErrorMemoryAllocation);
  std::byte* const at = take_addresses(charged, bytes);
  if (at == nullptr) return refuse(cudaErrorMemoryAllocation);
  book().allocated[at] = charged;
  *data = at;
  return cudaSuccess;
}

// Waits for all work, as the guide says under "Implicit Synchronization".
cudaError_t cudaFree(void* data) {
  const Lock lock;
  if (data == nullptr) return cudaSuccess;
  const auto found = book().allocated.find(static_cast<std::byte*>(data));
  if (found == book().allocated.end()) return refuse(cudaErrorInvalidValue);
  if (captures_anything()) return refuse(cudaErrorStreamCaptureUnsupported);
  finish_all();
  give_addresses(found->first, found->second);
  credit(found->second);
  book().allocated.erase(found);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned flags) {
  const Lock lock;
  if (flags != cudaHostAllocDefault) return refuse(cudaErrorNotSupported);
  if (is_refused()) return refuse(cudaErrorMemoryAllocation);
  const std::size_t size = headroom::align_up(bytes, 4096);
  void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return refuse(cudaErrorMemoryAllocation);
  poison(at, size);
  book().pinned[static_cast<std::byte*>(at)] = size;
  *data = at;
  return cudaSuccess;
}

// Does not wait; callers must not rely on it waiting or not waiting.
cudaError_t cudaFreeHost(void* data) {
  const Lock lock;
  const auto found = book().pinned.find(static_cast<std::byte*>(data));
  if (found == book().pinned.end()) return refuse(cudaErrorInvalidValue);
  munmap(found->first, found->second);
  book().pinned.erase(found);
  return cudaSuccess;
}

// Pinned memory is read and written when the copy runs, other host memory before this call returns
// (CUDA Runtime API, "API synchronization behavior").
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind direction,
                            cudaStream_t stream) {
  const Lock lock;
  const bool up = direction == cudaMemcpyHostToDevice;
  if (!up && direction != cudaMemcpyDeviceToHost) return refuse(cudaErrorInvalidMemcpyDirection);
  const void* const host = up ? from : to;
  if (!is_shown(up ? to : from, bytes) || is_shown(host, 1)) return refuse(cudaErrorInvalidValue);
  if (lies_in(book().pinned, host, bytes) || captures(stream))
    return give(stream, [=] { std::memcpy(to, from, bytes); });
  if (!up) {
    const cudaError_t given = give(stream, [=] { std::memcpy(to, from, bytes); });
    return given == cudaSuccess ? finish(stream) : given;
  }
  const auto* const first = static_cast<const std::byte*>(from);
  return give(stream, [to, copy = std::vector<std::byte>(first, first + bytes)] {
    std::memcpy(to, copy.data(), copy.size());
  });
}
