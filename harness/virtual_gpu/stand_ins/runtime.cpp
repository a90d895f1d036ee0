// Stands in for the CUDA runtime (libcudart). What differs between CUDA 12 and 13 is in
// runtime_12.cpp and runtime_13.cpp.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/contents.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"
#include "harness/virtual_gpu/stand_ins/kernels.h"

using namespace headroom::virtual_gpu;

namespace headroom::virtual_gpu {

void* new_object() { return std::calloc(1, 4096); }

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

namespace {

thread_local int last_error = kSuccess;

int failed(int error) { return last_error = error; }

bool is_device(int device) { return device >= 0 && device < card().devices; }

}  // namespace

// Devices

HEADROOM_EXPORT int cudaGetDeviceCount(int* count) {
  *count = card().devices;
  return kSuccess;
}
HEADROOM_EXPORT int cudaGetDevice(int* device) {
  *device = current_device();
  return kSuccess;
}
HEADROOM_EXPORT int cudaSetDevice(int device) {
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
    case kInvalidDevice:
      return "cudaErrorInvalidDevice";
    case kNotReady:
      return "cudaErrorNotReady";
    case kNotSupported:
      return "cudaErrorNotSupported";
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
    case kInvalidDevice:
      return "invalid device ordinal";
    case kNotReady:
      return "device not ready";
    case kNotSupported:
      return "operation not supported";
    default: {
      thread_local char text[40];
      std::snprintf(text, sizeof text, "CUDA error %d", error);
      return text;
    }
  }
}

// Memory

HEADROOM_EXPORT int cudaMalloc(void** address, std::size_t bytes) {
  *address = allocate(bytes, current_device());
  return *address != nullptr || bytes == 0 ? kSuccess : failed(kOutOfMemory);
}
HEADROOM_EXPORT int cudaFree(void* address) {
  return address == nullptr || release(address) ? kSuccess : failed(kInvalidValue);
}
// The driver's pools keep freed memory by rules of their own, which are not modelled: an
// asynchronous allocation takes memory as a plain one does and gives it back at once.
HEADROOM_EXPORT int cudaMallocAsync(void** address, std::size_t bytes, void*) {
  return cudaMalloc(address, bytes);
}
HEADROOM_EXPORT int cudaMallocFromPoolAsync(void** address, std::size_t bytes, void*, void*) {
  return cudaMalloc(address, bytes);
}
HEADROOM_EXPORT int cudaFreeAsync(void* address, void*) { return cudaFree(address); }
HEADROOM_EXPORT int cudaMallocManaged(void** address, std::size_t bytes, unsigned) {
  *address = allocate_host(bytes);
  return *address != nullptr || bytes == 0 ? kSuccess : failed(kOutOfMemory);
}
HEADROOM_EXPORT int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = free_bytes(current_device());
  *total = card().memory_bytes;
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceGetDefaultMemPool(void** pool, int device) {
  *pool = reinterpret_cast<void*>(static_cast<std::uintptr_t>(0x5000 + device * 16));
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceGetMemPool(void** pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
HEADROOM_EXPORT int cudaMemPoolGetAttribute(void*, int attribute, void* value) {
  const DeviceRecord& device = record().devices[current_device()];
  const bool current = attribute == 5 || attribute == 7, high = attribute == 6 || attribute == 8;
  std::uint64_t bytes = 0;
  if (current) bytes = device.used_bytes;
  if (high) bytes = device.peak_bytes;
  if (attribute >= 4)
    std::memcpy(value, &bytes, sizeof bytes);
  else
    std::memset(value, 0, sizeof(int));
  return kSuccess;
}
HEADROOM_EXPORT int cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  *address = allocate_host(bytes);
  return *address != nullptr || bytes == 0 ? kSuccess : failed(kOutOfMemory);
}
HEADROOM_EXPORT int cudaMallocHost(void** address, std::size_t bytes) {
  return cudaHostAlloc(address, bytes, 0);
}
HEADROOM_EXPORT int cudaFreeHost(void* address) {
  return address == nullptr || release_host(address) ? kSuccess : failed(kInvalidValue);
}
HEADROOM_EXPORT int cudaHostRegister(void* address, std::size_t bytes, unsigned) {
  register_host(address, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaHostUnregister(void* address) {
  unregister_host(address);
  return kSuccess;
}
HEADROOM_EXPORT int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  copy(to, from, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void*) {
  copy(to, from, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                        void*) {
  copy(to, from, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                                      std::size_t from_pitch, std::size_t width, std::size_t height,
                                      int, void*) {
  for (std::size_t row = 0; row < height; ++row)
    copy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
         width);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemset(void* to, int value, std::size_t bytes) {
  fill(to, static_cast<unsigned char>(value), bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemsetAsync(void* to, int value, std::size_t bytes, void*) {
  return cudaMemset(to, value, bytes);
}
// The fields of cudaPointerAttributes that CUDA 12 and 13 share.
struct PointerAttributes {
  int type;  // 0 unknown, 1 host, 2 device
  int device;
  void* device_pointer;
  void* host_pointer;
};
HEADROOM_EXPORT int cudaPointerGetAttributes(PointerAttributes* out, const void* address) {
  auto* pointer = const_cast<void*>(address);
  if (const auto range = find(address))
    *out = {2, range->device, pointer, nullptr};
  else if (is_page_locked(address))
    *out = {1, current_device(), pointer, pointer};
  else
    *out = {0, -1, nullptr, pointer};
  return kSuccess;
}

// Streams and events. Everything is finished as soon as it is queued.

namespace {

std::mutex capture_mutex;
std::set<void*> capturing_streams;
unsigned long long capture_id = 0;

}  // namespace

// For runtime_12.cpp and runtime_13.cpp: status, id and (dummy) graph of a stream's capture.
HEADROOM_EXPORT void headroom_gpu_capture_info(void* stream, int* status, unsigned long long* id,
                                               void** graph) {
  const std::lock_guard lock(capture_mutex);
  *status = capturing_streams.count(stream) > 0 ? 1 : 0;
  if (id != nullptr) *id = capture_id;
  if (graph != nullptr) *graph = reinterpret_cast<void*>(0x1000);
}
HEADROOM_EXPORT const Card* headroom_gpu_card() { return &card(); }

HEADROOM_EXPORT int cudaStreamCreate(void** stream) {
  *stream = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cudaStreamCreateWithFlags(void** stream, unsigned) {
  return cudaStreamCreate(stream);
}
HEADROOM_EXPORT int cudaStreamCreateWithPriority(void** stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
HEADROOM_EXPORT int cudaStreamGetPriority(void*, int* priority) {
  *priority = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cudaStreamAddCallback(void* stream, void (*callback)(void*, int, void*),
                                          void* data, unsigned) {
  callback(stream, kSuccess, data);
  return kSuccess;
}
HEADROOM_EXPORT int cudaLaunchHostFunc(void*, void (*function)(void*), void* data) {
  function(data);
  return kSuccess;
}
HEADROOM_EXPORT int cudaEventCreate(void** event) {
  *event = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cudaEventCreateWithFlags(void** event, unsigned) {
  return cudaEventCreate(event);
}
// There is no time on a GPU that is not there. Programs divide by what they read, so it is not 0.
HEADROOM_EXPORT int cudaEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 0.001f;
  return kSuccess;
}
HEADROOM_EXPORT int cudaEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}
HEADROOM_EXPORT int cudaStreamBeginCapture(void* stream, int) {
  const std::lock_guard lock(capture_mutex);
  capturing_streams.insert(stream);
  ++capture_id;
  return kSuccess;
}
HEADROOM_EXPORT int cudaStreamEndCapture(void* stream, void** graph) {
  const std::lock_guard lock(capture_mutex);
  capturing_streams.erase(stream);
  *graph = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cudaStreamIsCapturing(void* stream, int* status) {
  headroom_gpu_capture_info(stream, status, nullptr, nullptr);
  return kSuccess;
}
HEADROOM_EXPORT int cudaThreadExchangeStreamCaptureMode(int*) { return kSuccess; }
HEADROOM_EXPORT int cudaGraphInstantiate(void** executable, void*, unsigned long long) {
  *executable = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cudaGraphInstantiateWithFlags(void** executable, void*, unsigned long long) {
  *executable = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cudaGraphGetNodes(void*, void**, std::size_t* count) {
  *count = 1;
  return kSuccess;
}

// Kernels: registered by the framework's libraries, never run.

HEADROOM_EXPORT void** __cudaRegisterFatBinary(void*) {
  static void* handle[1];
  return handle;
}
HEADROOM_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}
HEADROOM_EXPORT void __cudaUnregisterFatBinary(void**) {}
HEADROOM_EXPORT void __cudaRegisterFunction(void**, const char* function, char*,
                                            const char* mangled_name) {
  note_kernel(function, mangled_name);
}
HEADROOM_EXPORT void __cudaRegisterVar() {}
HEADROOM_EXPORT void __cudaRegisterManagedVar() {}
HEADROOM_EXPORT int __cudaPushCallConfiguration() { return kSuccess; }
HEADROOM_EXPORT int __cudaPopCallConfiguration(unsigned* grid, unsigned* block, std::size_t* shared,
                                               void** stream) {
  for (int i = 0; i < 3; ++i) grid[i] = block[i] = 1;
  *shared = 0;
  *stream = nullptr;
  return kSuccess;
}
HEADROOM_EXPORT int __cudaGetKernel(void** kernel, const void* function) {
  *kernel = const_cast<void*>(function);
  return kSuccess;
}
HEADROOM_EXPORT int cudaGetFuncBySymbol(void** function, const void* symbol) {
  *function = const_cast<void*>(symbol);
  return kSuccess;
}
HEADROOM_EXPORT int cudaLaunchKernelExC(const void*, const void* function, void** arguments) {
  ++record().kernel_launches;
  settle_results(function, arguments);
  return kSuccess;
}
struct Dim3 {
  unsigned x, y, z;
};
HEADROOM_EXPORT int cudaLaunchKernel(const void* function, Dim3, Dim3, void** arguments) {
  return cudaLaunchKernelExC(nullptr, function, arguments);
}
HEADROOM_EXPORT int __cudaLaunchKernel(const void* kernel, Dim3, Dim3, void** arguments) {
  return cudaLaunchKernelExC(nullptr, kernel, arguments);
}
HEADROOM_EXPORT int cudaLaunchCooperativeKernel(const void* function, Dim3, Dim3,
                                                void** arguments) {
  return cudaLaunchKernelExC(nullptr, function, arguments);
}
HEADROOM_EXPORT int cudaGetSymbolAddress(void** address, const void* symbol) {
  *address = const_cast<void*>(symbol);
  return kSuccess;
}
// The beginning of cudaFuncAttributes.
struct FunctionAttributes {
  std::size_t shared_bytes, constant_bytes, local_bytes;
  int threads_per_block, registers, ptx_version, binary_version, cache_mode;
  int dynamic_shared_bytes, preferred_carveout;
};
HEADROOM_EXPORT int cudaFuncGetAttributes(FunctionAttributes* out, const void*) {
  const int version = architecture_of_kernels();
  *out = {0, 0, 0, 1024, 32, version, version, 0, 49'152, -1};
  return kSuccess;
}
// A kernel of few registers: the threads of a multiprocessor are what limits it.
HEADROOM_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*,
                                                                  int threads, std::size_t) {
  *blocks = threads > 0 ? std::max(1, card().threads_per_multiprocessor / threads) : 1;
  return kSuccess;
}
HEADROOM_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int threads, std::size_t shared, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

// Rarely called.

HEADROOM_EXPORT int cudaMallocPitch(void** address, std::size_t* pitch, std::size_t width,
                                    std::size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(address, *pitch * height);
}
HEADROOM_EXPORT int cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  copy(to, from, bytes);
  return kSuccess;
}
HEADROOM_EXPORT int cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from,
                                 std::size_t from_pitch, std::size_t width, std::size_t height,
                                 int kind) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}
HEADROOM_EXPORT int cudaDeviceGetP2PAttribute(int* value, int, int, int) {
  *value = 0;  // no access between the cards
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
HEADROOM_EXPORT int cudaStreamGetDevice(void*, int* device) {
  *device = current_device();
  return kSuccess;
}
HEADROOM_EXPORT int cudaOccupancyMaxActiveClusters(int* clusters, const void*, const void*) {
  *clusters = 1;
  return kSuccess;
}

// The driver, by name.

HEADROOM_EXPORT int cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                                     unsigned long long, int* result) {
  *function = function_named(name);
  if (result != nullptr) *result = *function != nullptr ? 0 : 1;  // found, symbol not found
  return kSuccess;
}
HEADROOM_EXPORT int cudaGetDriverEntryPoint(const char* name, void** function,
                                            unsigned long long flags, int* result) {
  return cudaGetDriverEntryPointByVersion(name, function, 0, flags, result);
}
