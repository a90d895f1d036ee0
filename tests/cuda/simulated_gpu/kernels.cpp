// Our own kernels compiled for the CPU, with the CUB headers of this folder.
#include <cuda_runtime_api.h>

// nvcc generates an overload for every kernel.
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)()) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}

#include "harness/device/cuda/module/kernels/elementwise.cu"
#include "harness/device/cuda/module/kernels/loss.cu"
#include "harness/device/cuda/module/kernels/normalise.cu"
#include "harness/device/cuda/module/kernels/own_kernel.cu"
#include "harness/device/cuda/module/kernels/pooling.cu"
#include "harness/device/cuda/module/kernels/sort.cu"
#include "harness/device/cuda/module/kernels/update.cu"
