// Stands in for the CUDA driver's documented interface (libcuda), as far as frameworks call it
// themselves: devices, contexts, errors, and functions by name. Calls between NVIDIA's own
// libraries and the driver that are not documented are not imitated.
#include <cstdio>
#include <cstring>

#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"
#include "harness/virtual_gpu/stand_ins/record.h"

using namespace headroom::virtual_gpu;

// Defined in runtime/devices.cpp: the driver and the runtime give errors the same text.
extern "C" const char* cudaGetErrorString(int error);

namespace {

// The primary context of each device, the only one it has, is the address of its entry.
char contexts[kMaxDevices];
thread_local void* context_of_thread = nullptr;

void* current_context() {
  return context_of_thread != nullptr ? context_of_thread : &contexts[current_device()];
}

void set_context(void* context) {
  context_of_thread = context;
  auto* entry = static_cast<char*>(context);
  if (entry >= contexts && entry < contexts + kMaxDevices)
    set_current_device(static_cast<int>(entry - contexts));
}

}  // namespace

HEADROOM_EXPORT int cuInit(unsigned) { return kSuccess; }
HEADROOM_EXPORT int cuDriverGetVersion(int* version) {
  *version = card().driver_version;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGetCount(int* count) {
  *count = visible_devices();
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGet(int* device, int ordinal) {
  if (!is_device(ordinal)) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<std::size_t>(size), "%s", card().name.c_str());
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = card().memory_bytes;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGetUuid(char* uuid, int device) {
  std::memset(uuid, device + 1, 16);
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGetUuid_v2(char* uuid, int device) {
  return cuDeviceGetUuid(uuid, device);
}
HEADROOM_EXPORT int cuDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:00:%02x.0", 4 + device);
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = device_attribute(attribute);
  return kSuccess;
}
// Every attribute is 0, because the cards cannot access each other's memory.
HEADROOM_EXPORT int cuDeviceGetP2PAttribute(int* value, int, int, int) {
  *value = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceComputeCapability(int* major, int* minor, int) {
  *major = card().compute_major;
  *minor = card().compute_minor;
  return kSuccess;
}
HEADROOM_EXPORT int cuDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (!is_device(device)) return kInvalidDevice;
  *context = &contexts[device];
  return kSuccess;
}
HEADROOM_EXPORT int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetCurrent(void** context) {
  *context = current_context();
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxSetCurrent(void* context) {
  set_context(context);
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxPushCurrent_v2(void* context) { return cuCtxSetCurrent(context); }
HEADROOM_EXPORT int cuCtxPopCurrent_v2(void** context) {
  if (context != nullptr) *context = current_context();
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetDevice(int* device) {
  *device = current_device();
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetId(void* context, unsigned long long* id) {
  *id = reinterpret_cast<unsigned long long>(context == nullptr ? current_context() : context);
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetFlags(unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetApiVersion(void*, unsigned* version) {
  *version = static_cast<unsigned>(card().driver_version);
  return kSuccess;
}
HEADROOM_EXPORT int cuCtxGetLimit(std::size_t* value, int) {
  *value = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamGetCtx(void*, void** context) { return cuCtxGetCurrent(context); }
HEADROOM_EXPORT int cuGetErrorName(int error, const char** name) {
  switch (error) {
    case kSuccess:
      *name = "CUDA_SUCCESS";
      break;
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      break;
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case kInvalidDevice:
      *name = "CUDA_ERROR_INVALID_DEVICE";
      break;
    case kNotFound:
      *name = "CUDA_ERROR_NOT_FOUND";
      break;
    case kNotSupported:
      *name = "CUDA_ERROR_NOT_SUPPORTED";
      break;
    default:
      *name = "CUDA_ERROR_UNKNOWN";
  }
  return kSuccess;
}
HEADROOM_EXPORT int cuGetErrorString(int error, const char** text) {
  *text = cudaGetErrorString(error);
  return kSuccess;
}
// NVIDIA's libraries exchange undocumented tables with the driver; the stand-in has none.
HEADROOM_EXPORT int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotFound;
}
HEADROOM_EXPORT int cuGetProcAddress_v2(const char* name, void** function, int, unsigned long long,
                                        int* result) {
  *function = function_named(name);
  if (result != nullptr) *result = *function != nullptr ? 0 : 1;
  return *function != nullptr ? kSuccess : kNotFound;
}
HEADROOM_EXPORT int cuGetProcAddress(const char* name, void** function, int version,
                                     unsigned long long flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
