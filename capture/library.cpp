// The library that serves Headroom's allocators to PyTorch. Preloaded, it takes the place of
// c10::alloc_cpu and c10::free_cpu, so that it serves the machine's own memory; loaded by
// CUDAPluggableAllocator it serves a virtual GPU's. The environment names the allocator:
//
//   HEADROOM_ALLOCATOR           such as bfc(growth=on)
//   HEADROOM_ALLOCATOR_CAPACITY  bytes of the machine's memory that it may take
//
// `headroom gpu` and `headroom capture` check both before they start a program.
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "capture/cuda_memory.h"
#include "capture/pytorch_error.h"
#include "capture/served_allocator.h"
#include "harness/base/error.h"
#include "harness/device/host/host_memory.h"

#define HEADROOM_EXPORT extern "C" __attribute__((visibility("default")))

namespace headroom {
namespace {

constexpr int kHost = -1;
constexpr int kMostDevices = 64;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Ends the program: what went wrong cannot be told to PyTorch.
[[noreturn]] void stop(const Error& error) {
  std::fflush(nullptr);
  std::fputs(
      fmt::format("headroom: --allocator {}: {}\n", variable("HEADROOM_ALLOCATOR"), error.what())
          .c_str(),
      stderr);
  _exit(static_cast<int>(error.exit_code()));
}

std::unique_ptr<DeviceMemory> memory_of(int device) {
  if (device != kHost) return std::make_unique<CudaMemory>(device);
  return std::make_unique<HostMemory>(
      parse_bytes(variable("HEADROOM_ALLOCATOR_CAPACITY"), "HEADROOM_ALLOCATOR_CAPACITY"));
}

// The allocators of all devices. They are never destroyed, because programs free blocks until the
// very end.
class Served {
 public:
  static Served& instance() {
    static auto* const served = new Served;
    return *served;
  }

  ServedAllocator& of(int device) {
    if (ServedAllocator* known = if_used(device)) return *known;
    const std::lock_guard lock(mutex_);
    if (ServedAllocator* known = if_used(device)) return *known;
    auto* made = new ServedAllocator(Spec::parse_composition(variable("HEADROOM_ALLOCATOR")),
                                     memory_of(device));
    place_of(device) = made;
    return *made;
  }
  ServedAllocator* if_used(int device) { return place_of(device); }

 private:
  Served() {
    pthread_atfork([] { instance().lock(); }, [] { instance().unlock(); },
                   [] { instance().unlock(); });
  }
  void lock() {
    mutex_.lock();
    for (ServedAllocator* served : by_device_)
      if (served != nullptr) served->lock();
  }
  void unlock() {
    for (ServedAllocator* served : by_device_)
      if (served != nullptr) served->unlock();
    mutex_.unlock();
  }

  std::atomic<ServedAllocator*>& place_of(int device) {
    const int place = device + 1;
    return by_device_.at(static_cast<std::size_t>(place));
  }

  std::mutex mutex_;  // held while one is made
  std::array<std::atomic<ServedAllocator*>, kMostDevices + 1> by_device_{};  // the host first
};

// Begins like PyTorch's own message, which programs search for.
std::string message_for(const OutOfMemory& error, Bytes bytes, int device) {
  if (device == kHost)
    return fmt::format(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate {} bytes. Headroom's "
        "allocator: {}",
        bytes, error.what());
  return fmt::format("CUDA out of memory. Tried to allocate {} on GPU {}. Headroom's allocator: {}",
                     format_bytes(bytes), device, error.what());
}

// Returns null for zero bytes and, with a `refusal`, when there is no memory left.
void* try_to_allocate(Bytes bytes, int device, const void* stream, std::string& refusal) {
  try {
    return Served::instance().of(device).allocate(bytes, stream);
  } catch (const OutOfMemory& error) {
    refusal = message_for(error, bytes, device);
    return nullptr;
  } catch (const Error& error) {
    stop(error);
  }
}

// Throws PyTorch's error, so nothing here may have to be destroyed.
void* allocate(Bytes bytes, int device, const void* stream) {
  thread_local std::string refusal;
  refusal.clear();
  void* block = try_to_allocate(bytes, device, stream, refusal);
  if (block == nullptr && !refusal.empty()) throw_pytorch_out_of_memory(refusal);
  return block;
}

void free(void* address, int device) {
  if (address == nullptr) return;
  try {
    if (!Served::instance().of(device).free(address))
      throw Error("the program freed a block that this allocator did not allocate");
  } catch (const Error& error) {
    stop(error);
  }
}

}  // namespace
}  // namespace headroom

// What PyTorch calls for its tensors in the machine's own memory.
namespace c10 {
__attribute__((visibility("default"))) void* alloc_cpu(std::size_t bytes) {
  return headroom::allocate(bytes, headroom::kHost, nullptr);
}
__attribute__((visibility("default"))) void free_cpu(void* address) {
  headroom::free(address, headroom::kHost);
}
}  // namespace c10

// What CUDAPluggableAllocator calls.
HEADROOM_EXPORT void* headroom_allocate(std::size_t bytes, int device, void* stream) {
  return headroom::allocate(bytes, device, stream);
}
HEADROOM_EXPORT void headroom_free(void* address, std::size_t, int device, void*) {
  headroom::free(address, device);
}
HEADROOM_EXPORT void headroom_record_stream(void* address, void* stream) {
  for (int device = 0; device < headroom::kMostDevices; ++device)
    if (auto* served = headroom::Served::instance().if_used(device))
      served->record_stream(address, stream);
}
HEADROOM_EXPORT void headroom_trim() {
  for (int device = 0; device < headroom::kMostDevices; ++device)
    if (auto* served = headroom::Served::instance().if_used(device)) served->trim();
}

// The functions that harness/virtual_gpu/hook/headroom_served.py calls. Device -1 is the machine's
// own memory.
HEADROOM_EXPORT bool headroom_can_refuse() { return headroom::can_throw_pytorch_out_of_memory(); }
HEADROOM_EXPORT void headroom_end_step() {
  for (int device = headroom::kHost; device < headroom::kMostDevices; ++device)
    if (auto* served = headroom::Served::instance().if_used(device)) served->end_step();
}
HEADROOM_EXPORT void headroom_reset_peaks(int device) {
  if (auto* served = headroom::Served::instance().if_used(device)) served->reset_peaks();
}
// Returns whether the device was used.
HEADROOM_EXPORT bool headroom_figures(int device, headroom::ServedFigures* figures) {
  auto* served = headroom::Served::instance().if_used(device);
  if (served != nullptr) *figures = served->figures();
  return served != nullptr;
}
// How often the device was asked for memory; 0 for one that was not used.
HEADROOM_EXPORT std::uint64_t headroom_device_allocations(int device) {
  auto* served = headroom::Served::instance().if_used(device);
  return served == nullptr ? 0 : served->device_allocations();
}
// Why a result under the allocator's name does not count; "" if it does.
HEADROOM_EXPORT const char* headroom_why_not_engaged(int device) {
  static std::string reason;
  auto* served = headroom::Served::instance().if_used(device);
  reason = served == nullptr ? "" : served->why_not_engaged().value_or("");
  return reason.c_str();
}
