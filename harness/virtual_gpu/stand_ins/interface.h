// The parts that make the stand-ins look like CUDA's libraries: visibility, error numbers, handles.
// Declarations follow NVIDIA's public documentation; nothing of NVIDIA's is included.
#pragma once

#include <atomic>
#include <cstdint>

#define HEADROOM_EXPORT extern "C" __attribute__((visibility("default")))

namespace headroom::virtual_gpu {

// cudaError_t and CUresult agree on these numbers.
enum Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kUnloading = 4,
  kNoSuchFunction = 98,
  kInvalidDevice = 101,
  kNotFound = 500,
  kNotReady = 600,
  kNotSupported = 801,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
};

// Returns `error`, which cudaGetLastError() returns next in this thread.
int failed(int error);

// Returns an opaque handle that is never null and never the same twice.
inline void* new_handle() {
  static std::atomic<std::uintptr_t> last{0x100000};
  return reinterpret_cast<void*>(last += 64);
}

// Returns a zeroed object, for handles whose fields some frameworks read.
void* new_object();
void delete_object(void* object);

// Finds the newest version ("_v2" and the like) of the function called `name` in this library.
void* function_named(const char* name);

}  // namespace headroom::virtual_gpu
