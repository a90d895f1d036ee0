// Turns the status codes of CUDA, cuDNN and cuBLAS into DeviceError, and their handles into
// owners that give them back.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <memory>
#include <string_view>

namespace headroom::cuda {

// `doing` completes the sentence "CUDA refused …": "to create a stream".
void require_success(cudaError_t status, std::string_view doing);
void require_success(cudnnStatus_t status, std::string_view doing);
void require_success(cublasStatus_t status, std::string_view doing);

template <auto kDestroy>
struct Destroyer {
  template <typename T>
  void operator()(T* handle) const {
    kDestroy(handle);
  }
};
template <typename T, auto kDestroy>
using Owned = std::unique_ptr<T, Destroyer<kDestroy>>;

// A call `create(T** handle, arguments…)`, owned.
template <auto kDestroy, typename T, typename... Parameters, typename Status, typename... Arguments>
Owned<T, kDestroy> make_owned(Status (*create)(T**, Parameters...), std::string_view doing,
                              Arguments... arguments) {
  T* handle = nullptr;
  require_success(create(&handle, arguments...), doing);
  return Owned<T, kDestroy>(handle);
}

}  // namespace headroom::cuda
