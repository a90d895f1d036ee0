// The driver's streams, events and kernels. Nothing runs, so work finishes at once.
#include <algorithm>

#include "harness/virtual_gpu/stand_ins/account.h"
#include "harness/virtual_gpu/stand_ins/card.h"
#include "harness/virtual_gpu/stand_ins/device_memory.h"
#include "harness/virtual_gpu/stand_ins/interface.h"
#include "harness/virtual_gpu/stand_ins/kernels.h"

using namespace headroom::virtual_gpu;

HEADROOM_EXPORT int cuStreamCreate(void** stream, unsigned) {
  *stream = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamCreateWithPriority(void** stream, unsigned, int) {
  *stream = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamGetPriority(void*, int* priority) {
  *priority = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamIsCapturing(void*, int* status) {
  *status = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamAddCallback(void* stream, void (*callback)(void*, int, void*),
                                        void* data, unsigned) {
  callback(stream, kSuccess, data);
  return kSuccess;
}
HEADROOM_EXPORT int cuLaunchHostFunc(void*, void (*function)(void*), void* data) {
  function(data);
  return kSuccess;
}
HEADROOM_EXPORT int cuEventCreate(void** event, unsigned) {
  *event = new_handle();
  return kSuccess;
}
HEADROOM_EXPORT int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = kMillisecondsBetweenEvents;
  return kSuccess;
}
HEADROOM_EXPORT int cuFuncGetAttribute(int* value, int attribute, void*) {
  const int version = architecture_of_kernels();
  constexpr int kThreadsPerBlock = 0, kRegisters = 4, kPtxVersion = 5, kBinaryVersion = 6;
  *value = attribute == kThreadsPerBlock                             ? 1024
           : attribute == kRegisters                                 ? 32
           : attribute == kPtxVersion || attribute == kBinaryVersion ? version
                                                                     : 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads,
                                                                std::size_t) {
  *blocks = threads > 0 ? std::max(1, card().threads_per_multiprocessor / threads) : 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, void* function, int threads, std::size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
HEADROOM_EXPORT int cuOccupancyMaxPotentialBlockSize(int* grid, int* threads, void*, void*,
                                                     std::size_t, int limit) {
  *threads = limit > 0 ? std::min(limit, 1024) : 1024;
  *grid = card().multiprocessors * std::max(1, card().threads_per_multiprocessor / *threads);
  return kSuccess;
}
HEADROOM_EXPORT int cuLaunchKernel(const void* function, unsigned, unsigned, unsigned, unsigned,
                                   unsigned, unsigned, unsigned, void*, void** arguments, void**) {
  ++record().kernel_launches;
  settle_results(function, arguments);
  return kSuccess;
}
HEADROOM_EXPORT int cuLaunchKernelEx(const void*, const void* function, void** arguments, void**) {
  ++record().kernel_launches;
  settle_results(function, arguments);
  return kSuccess;
}
HEADROOM_EXPORT int cuLaunchCooperativeKernel(const void* function, unsigned, unsigned, unsigned,
                                              unsigned, unsigned, unsigned, unsigned, void*,
                                              void** arguments) {
  return cuLaunchKernelEx(nullptr, function, arguments, nullptr);
}

// A kernel of a library serves as its own function.

HEADROOM_EXPORT int cuKernelGetFunction(void** function, void* kernel) {
  *function = kernel;
  return kSuccess;
}
HEADROOM_EXPORT int cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}
HEADROOM_EXPORT int cuFuncGetModule(void** module, void* function) {
  *module = function;
  return kSuccess;
}
HEADROOM_EXPORT int cuFuncIsLoaded(int* loaded, void*) {
  *loaded = 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuOccupancyMaxActiveClusters(int* clusters, void*, const void*) {
  *clusters = 1;
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamGetDevice(void*, int* device) {
  *device = current_device();
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamGetFlags(void*, unsigned* flags) {
  *flags = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cuStreamGetId(void* stream, unsigned long long* id) {
  *id = reinterpret_cast<unsigned long long>(stream);
  return kSuccess;
}
