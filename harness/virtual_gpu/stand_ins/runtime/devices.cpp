// Stands in for the CUDA runtime (libcudart): devices, errors, and the driver's functions by name.
// What differs between CUDA 12 and 13 is in version_12.cpp and version_13.cpp.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"

using namespace headroom::virtual_gpu;

namespace headroom::virtual_gpu {

namespace {

thread_local int last_error = kSuccess;

// Whether this is a thread that still runs while the process ends. CUDA's runtime refuses calls
// then, and the thread in which PyTorch watches NCCL ends quietly. Without an error it would go on
// to use what is already destroyed, and end the process by a signal.
bool is_left_over() {
  static std::atomic<bool> is_ending = false;
  [[maybe_unused]] static const int registered = std::atexit([] { is_ending = true; });
  return is_ending && gettid() != getpid();
}

}  // namespace

int failed(int error) { return last_error = error; }

void* new_object() { return std::calloc(1, 4096); }
void delete_object(void* object) { std::free(object); }

void* function_named(const char* name) {
  static void* self = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&function_named), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  for (const char* version : {"_v4", "_v3", "_v2", ""})
    if (void* found = dlsym(self, (std::string(name) + version).c_str())) return found;
  return nullptr;
}

}  // namespace headroom::virtual_gpu

HEADROOM_EXPORT int cudaGetDeviceCount(int* count) {
  *count = visible_devices();
  return kSuccess;
}
HEADROOM_EXPORT int cudaGetDevice(int* device) {
  if (is_left_over()) return failed(kUnloading);
  *device = current_device();
  return kSuccess;
}
HEADROOM_EXPORT int cudaSetDevice(int device) {
  if (is_left_over()) return failed(kUnloading);
  if (!is_device(device)) return failed(kInvalidDevice);
  set_current_device(device);
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (!is_device(device)) return failed(kInvalidDevice);
  *value = device_attribute(attribute);
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:00:%02x.0", 4 + device);
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cudaDriverGetVersion(int* version) {
  *version = card().driver_version;
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceGetP2PAttribute(int* value, int, int, int) {
  *value = 0;  // the cards cannot access each other's memory
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceGetLimit(std::size_t* value, int) {
  *value = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cudaGetDeviceFlags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}

// Errors

HEADROOM_EXPORT int cudaGetLastError() {
  const int error = last_error;
  last_error = kSuccess;
  return error;
}
HEADROOM_EXPORT int cudaPeekAtLastError() { return last_error; }
HEADROOM_EXPORT const char* cudaGetErrorName(int error) {
  switch (error) {
    case kSuccess:
      return "cudaSuccess";
    case kInvalidValue:
      return "cudaErrorInvalidValue";
    case kOutOfMemory:
      return "cudaErrorMemoryAllocation";
    case kUnloading:
      return "cudaErrorCudartUnloading";
    case kNoSuchFunction:
      return "cudaErrorInvalidDeviceFunction";
    case kInvalidDevice:
      return "cudaErrorInvalidDevice";
    case kNotReady:
      return "cudaErrorNotReady";
    case kNotSupported:
      return "cudaErrorNotSupported";
    case kStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case kStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    default:
      return "cudaErrorUnknown";
  }
}
HEADROOM_EXPORT const char* cudaGetErrorString(int error) {
  switch (error) {
    case kSuccess:
      return "no error";
    case kInvalidValue:
      return "invalid argument";
    case kOutOfMemory:
      return "out of memory";
    case kUnloading:
      return "driver shutting down";
    case kNoSuchFunction:
      return "invalid device function";
    case kInvalidDevice:
      return "invalid device ordinal";
    case kNotReady:
      return "device not ready";
    case kNotSupported:
      return "operation not supported";
    case kStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case kStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default: {
      thread_local char text[40];
      std::snprintf(text, sizeof text, "CUDA error %d", error);
      return text;
    }
  }
}

// Functions of the driver by name

HEADROOM_EXPORT int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                     unsigned long long, int* result) {
  *function = function_named(name);
  if (result != nullptr) *result = *function != nullptr ? 0 : 1;  // 1: there is no such symbol
  return kSuccess;
}
HEADROOM_EXPORT int cudaGetDriverEntryPoint(const char* name, void** function,
                                            unsigned long long flags, int* result) {
  return cudaGetDriverEntryPointByVersion(name, function, 0, flags, result);
}
