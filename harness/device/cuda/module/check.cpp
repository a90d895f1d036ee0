#include "harness/device/cuda/module/check.h"

#include <fmt/format.h>

#include "harness/base/error.h"

namespace headroom::cuda {

void require_success(cudaError_t status, std::string_view doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // else the next, innocent call would report it again
  throw DeviceError(fmt::format("CUDA refused {}: {} ({})", doing, cudaGetErrorString(status),
                                cudaGetErrorName(status)));
}

void require_success(cudnnStatus_t status, std::string_view doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("cuDNN refused {}: {}", doing, cudnnGetErrorString(status)));
}

void require_success(cublasStatus_t status, std::string_view doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("cuBLAS refused {}: {}", doing, cublasLtGetStatusString(status)));
}

}  // namespace headroom::cuda
