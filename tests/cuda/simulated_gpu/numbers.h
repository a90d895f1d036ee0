// Element types of the libraries.
#pragma once

#include <library_types.h>

#include "harness/device/host/kernels/eight_bits.h"
#include "harness/device/host/kernels/element.h"

namespace headroom::simulated_gpu {

// Returns use(T{}) for the type that `type` names: f32 where it is none of the others.
template <typename Use>
auto with_type(cudaDataType type, Use use) {
  switch (type) {
    case CUDA_R_16F:
      return use(host::F16{});
    case CUDA_R_16BF:
      return use(host::Bf16{});
    case CUDA_R_8F_E4M3:
      return use(host::F8E4M3{});
    case CUDA_R_8F_E5M2:
      return use(host::F8E5M2{});
    default:
      return use(float{});
  }
}

}  // namespace headroom::simulated_gpu
