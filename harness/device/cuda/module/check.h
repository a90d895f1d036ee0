// Turns status codes of CUDA, cuDNN and cuBLAS into a DeviceError that names the file and line of
// the call, or into OutOfMemory where that is the reason, and their handles into owners that
// release them.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <concepts>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>

namespace headroom::cuda {

// Completes the sentence "CUDA refused …", for example "to create a stream", and records the place
// of the call.
struct Doing {
  // Converts implicitly from any text, so that the recorded place is where the text is written.
  template <std::convertible_to<std::string_view> Text>
  // NOLINTNEXTLINE(google-explicit-constructor)
  Doing(const Text& doing, std::source_location place = std::source_location::current())
      : text(doing), at(place) {}
  std::string_view text;
  std::source_location at;
};

void require_success(cudaError_t status, Doing doing);
void require_success(cudnnStatus_t status, Doing doing);
void require_success(cublasStatus_t status, Doing doing);

// "harness/device/cuda/module/context.cpp:54"
std::string place_of(const std::source_location& at);

template <auto kDestroy>
struct Destroyer {
  template <typename T>
  void operator()(T* handle) const {
    kDestroy(handle);
  }
};
template <typename T, auto kDestroy>
using Owned = std::unique_ptr<T, Destroyer<kDestroy>>;

// Calls `create(T** handle, arguments…)` and owns the handle.
template <auto kDestroy, typename T, typename... Parameters, typename Status, typename... Arguments>
Owned<T, kDestroy> make_owned(Status (*create)(T**, Parameters...), Doing doing,
                              Arguments... arguments) {
  T* handle = nullptr;
  require_success(create(&handle, arguments...), doing);
  return Owned<T, kDestroy>(handle);
}

}  // namespace headroom::cuda
