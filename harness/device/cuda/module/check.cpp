#include "harness/device/cuda/module/check.h"

#include <fmt/format.h>

#include "harness/base/error.h"

namespace headroom::cuda {

std::string place_of(const std::source_location& at) {
  std::string_view file = at.file_name();
  if (const std::size_t root = file.rfind("harness/"); root != std::string_view::npos)
    file.remove_prefix(root);  // leaves out this machine's directory names
  return fmt::format("{}:{}", file, at.line());
}

void require_success(cudaError_t status, Doing doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, or the next call would report it again
  throw DeviceError(fmt::format("CUDA refused {}: {} ({}), at {}", doing.text,
                                cudaGetErrorString(status), cudaGetErrorName(status),
                                place_of(doing.at)));
}

void require_success(cudnnStatus_t status, Doing doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("cuDNN refused {}: {}, at {}", doing.text,
                                cudnnGetErrorString(status), place_of(doing.at)));
}

void require_success(cublasStatus_t status, Doing doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(fmt::format("cuBLAS refused {}: {}, at {}", doing.text,
                                cublasLtGetStatusString(status), place_of(doing.at)));
}

}  // namespace headroom::cuda
