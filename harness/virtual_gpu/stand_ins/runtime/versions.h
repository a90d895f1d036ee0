// The fields of cudaDeviceProp, in the documented order of CUDA 12 (kCuda = 12) or 13. Only those
// that describe the card are filled in; the others are zero.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "harness/virtual_gpu/stand_ins/card.h"

// Functions of the stand-ins' common library that libcudart.so.12 and .13 call.
extern "C" {
const headroom::virtual_gpu::Card* headroom_gpu_card();
// The oldest architecture that this version of CUDA compiles for.
void headroom_gpu_set_oldest_code(int architecture);
void headroom_gpu_capture_info(void* stream, int* status, unsigned long long* id, void** graph);
}

namespace headroom::virtual_gpu {

// Writes the fields that CUDA 12 and 13 share.
template <typename Properties>
void describe_card(Properties& p, int device) {
  std::memset(&p, 0, sizeof p);
  const Card& c = *headroom_gpu_card();
  std::snprintf(p.name, sizeof p.name, "%s", c.name.c_str());
  std::memset(p.uuid, device + 1, sizeof p.uuid);
  p.totalGlobalMem = c.memory_bytes;
  p.sharedMemPerBlock = 49'152;
  p.regsPerBlock = 65'536;
  p.warpSize = 32;
  p.memPitch = 2'147'483'647;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2'147'483'647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65'535;
  p.totalConstMem = 65'536;
  p.major = c.compute_major;
  p.minor = c.compute_minor;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.multiProcessorCount = c.multiprocessors;
  p.canMapHostMemory = 1;
  p.concurrentKernels = 1;
  p.pciBusID = 4 + device;
  p.asyncEngineCount = 1;
  p.unifiedAddressing = 1;
  p.l2CacheSize = c.l2_cache_bytes;
  p.maxThreadsPerMultiProcessor = c.threads_per_multiprocessor;
  p.streamPrioritiesSupported = 1;
  p.sharedMemPerMultiprocessor = static_cast<std::size_t>(c.shared_bytes_per_multiprocessor);
  p.regsPerMultiprocessor = 65'536;
  p.managedMemory = 1;
  p.cooperativeLaunch = 1;
  p.sharedMemPerBlockOptin = static_cast<std::size_t>(c.shared_bytes_per_block_optin);
  p.maxBlocksPerMultiProcessor = c.blocks_per_multiprocessor;
  p.reservedSharedMemPerBlock = 1024;
  p.memoryPoolsSupported = 1;
  p.clusterLaunch = c.compute_major >= 9 ? 1 : 0;
}

}  // namespace headroom::virtual_gpu
