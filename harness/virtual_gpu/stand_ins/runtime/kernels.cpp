// The runtime's streams, events, graphs and kernels. Nothing runs, so work finishes at once.
#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"
#include "harness/virtual_gpu/stand_ins/kernels.h"

using namespace headroom::virtual_gpu;

namespace {

// A stream whose work becomes a graph. What may not be done meanwhile makes the capture invalid.
struct Capture {
  bool is_relaxed;
  std::thread::id thread;
  bool is_valid = true;
};
constexpr int kRelaxed = 2;         // cudaStreamCaptureModeRelaxed
thread_local int capture_mode = 0;  // of this thread; 0: cudaStreamCaptureModeGlobal

std::mutex capture_mutex;
std::map<void*, Capture> captures;  // by stream
unsigned long long capture_id = 0;

int refuse(Capture& capture) {
  capture.is_valid = false;
  return failed(kStreamCaptureUnsupported);
}

}  // namespace

// The status, id and (dummy) graph of a stream's capture, for version_12.cpp and version_13.cpp.
HEADROOM_EXPORT void headroom_gpu_capture_info(void* stream, int* status, unsigned long long* id,
                                               void** graph) {
  const std::lock_guard lock(capture_mutex);
  const auto found = captures.find(stream);
  *status = found == captures.end() ? 0 : found->second.is_valid ? 1 : 2;
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
HEADROOM_EXPORT int cudaStreamGetDevice(void*, int* device) {
  *device = current_device();
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
HEADROOM_EXPORT int cudaEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = kMillisecondsBetweenEvents;
  return kSuccess;
}
HEADROOM_EXPORT int cudaEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}
HEADROOM_EXPORT int cudaStreamSynchronize(void* stream) {
  const std::lock_guard lock(capture_mutex);
  const auto found = captures.find(stream);
  if (found != captures.end()) return refuse(found->second);
  synchronise_pools();
  return kSuccess;
}
HEADROOM_EXPORT int cudaDeviceSynchronize() {
  const std::lock_guard lock(capture_mutex);
  for (auto& [stream, capture] : captures) {
    const bool is_own = capture.thread == std::this_thread::get_id();
    if (is_own && !capture.is_relaxed && capture_mode != kRelaxed) return refuse(capture);
  }
  synchronise_pools();
  return kSuccess;
}
HEADROOM_EXPORT int cudaEventSynchronize(void*) {
  synchronise_pools();
  return kSuccess;
}
HEADROOM_EXPORT int cudaStreamBeginCapture(void* stream, int mode) {
  const std::lock_guard lock(capture_mutex);
  captures[stream] = {mode == kRelaxed, std::this_thread::get_id()};
  ++capture_id;
  return kSuccess;
}
HEADROOM_EXPORT int cudaStreamEndCapture(void* stream, void** graph) {
  const std::lock_guard lock(capture_mutex);
  const auto found = captures.find(stream);
  const bool is_valid = found == captures.end() || found->second.is_valid;
  captures.erase(stream);
  *graph = is_valid ? new_handle() : nullptr;
  return is_valid ? kSuccess : failed(kStreamCaptureInvalidated);
}
HEADROOM_EXPORT int cudaStreamIsCapturing(void* stream, int* status) {
  headroom_gpu_capture_info(stream, status, nullptr, nullptr);
  return kSuccess;
}
HEADROOM_EXPORT int cudaThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return kSuccess;
}
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

// Kernels that the framework's libraries register; none runs.

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
// The first fields of cudaFuncAttributes.
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
// Kernels count as using few registers, so that only the number of threads limits them.
HEADROOM_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*,
                                                                  int threads, std::size_t) {
  *blocks = threads > 0 ? std::max(1, card().threads_per_multiprocessor / threads) : 1;
  return kSuccess;
}
HEADROOM_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int threads, std::size_t shared, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
HEADROOM_EXPORT int cudaOccupancyMaxActiveClusters(int* clusters, const void*, const void*) {
  *clusters = 1;
  return kSuccess;
}
