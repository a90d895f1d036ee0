// The functions of libcudart.so.12 whose arguments differ between CUDA 12 and 13. They are built
// into the library of that name, so a program gets those of the version that it was linked with.
#include <dlfcn.h>

#include "harness/virtual_gpu/stand_ins/interface.h"
#include "harness/virtual_gpu/stand_ins/runtime/versions.h"

using namespace headroom::virtual_gpu;

namespace {

// cudaDeviceProp of CUDA 12, with its documented names.
struct DeviceProperties {
  char name[256], uuid[16], luid[8];
  unsigned luidDeviceNodeMask;
  std::size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  std::size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
  std::size_t totalConstMem;
  int major, minor;
  std::size_t textureAlignment, texturePitchAlignment;
  int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated;
  int canMapHostMemory, computeMode, maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear;
  int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
  int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2];
  int maxTexture2DLayered[3], maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2];
  int maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3], maxSurfaceCubemap;
  int maxSurfaceCubemapLayered[2];
  std::size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
  int asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize;
  int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
  int globalL1CacheSupported, localL1CacheSupported;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
  int hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess;
  int concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem;
  int cooperativeLaunch, cooperativeMultiDeviceLaunch;
  std::size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
  int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
  std::size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
  int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
  int unifiedFunctionPointers, reserved2[2], reserved1[1], reserved[60];
};

}  // namespace

HEADROOM_EXPORT int cudaRuntimeGetVersion(int* version) {
  *version = 12'090;
  return kSuccess;
}
HEADROOM_EXPORT int cudaGetDeviceProperties_v2(DeviceProperties* out, int device) {
  if (device < 0 || device >= headroom_gpu_card()->devices) return kInvalidDevice;
  describe_card(*out, device);
  return kSuccess;
}
// The name of this function since CUDA 13. cuDNN's front end looks for libcudart.so.12 first, also
// where it was compiled for CUDA 13, as in Transformer Engine.
HEADROOM_EXPORT int cudaGetDeviceProperties(void* out, int device) {
  void* newer = dlopen("libcudart.so.13", RTLD_LAZY | RTLD_NOLOAD);
  if (newer == nullptr) return kNotSupported;
  using Function = int (*)(void*, int);
  return reinterpret_cast<Function>(dlsym(newer, "cudaGetDeviceProperties"))(out, device);
}
HEADROOM_EXPORT int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id) {
  headroom_gpu_capture_info(stream, status, id, nullptr);
  return kSuccess;
}
HEADROOM_EXPORT int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id,
                                                void** graph, void***, std::size_t* dependencies) {
  headroom_gpu_capture_info(stream, status, id, graph);
  if (dependencies != nullptr) *dependencies = 0;
  return kSuccess;
}
HEADROOM_EXPORT int cudaStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id,
                                                void** graph, void***, void**,
                                                std::size_t* dependencies) {
  return cudaStreamGetCaptureInfo_v2(stream, status, id, graph, nullptr, dependencies);
}
