#include "harness/device/cuda/module/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/error.h"

namespace headroom::cuda {

std::string place_of(const std::source_location& at) {
  std::string_view file = at.file_name();
  if (const std::size_t root = file.rfind("harness/"); root != std::string_view::npos)
    file.remove_prefix(root);  // leaves out directory names of this machine
  return fmt::format("{}:{}", file, at.line());
}

namespace {

[[noreturn]] void refused(const char* who, const Doing& doing, const std::string& why,
                          bool out_of_memory) {
  const std::string text =
      fmt::format("{} refused {}: {}, at {}", who, doing.text, why, place_of(doing.at));
  if (out_of_memory) throw OutOfMemory(text);
  throw DeviceError(text);
}

// Returns cuDNN's message about the last error in this thread. It usually names the bad argument.
std::string last_words_of_cudnn() {
  std::array<char, 512> text{};
  cudnnGetLastErrorString(text.data(), text.size());
  std::string words = text.data();
  std::replace(words.begin(), words.end(), '\n', ' ');
  return words.empty() ? words : " (" + words + ")";
}

}  // namespace

void require_success(cudaError_t status, Doing doing) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // clears the error, or the next call would report it again
  refused("CUDA", doing,
          fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status)),
          status == cudaErrorMemoryAllocation);
}

void require_success(cudnnStatus_t status, Doing doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  refused("cuDNN", doing, cudnnGetErrorString(status) + last_words_of_cudnn(),
          status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
}

void require_success(cublasStatus_t status, Doing doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  refused("cuBLAS", doing, cublasLtGetStatusString(status), status == CUBLAS_STATUS_ALLOC_FAILED);
}

}  // namespace headroom::cuda
