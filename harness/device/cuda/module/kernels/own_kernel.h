// The interface to nvcc: our own kernels (work/) built for the GPU.
#pragma once

#include <string_view>

#include "harness/device/cuda/module/kernels/kernel.h"

namespace headroom::cuda {

std::vector<std::string_view> own_kinds();
// `op` must be of one of our own kinds; it may have a condition.
std::unique_ptr<Kernel> make_own_kernel(const Context&, const Program&, const Op&);

// Computes db of linear_backward_weights.
std::unique_ptr<Kernel> make_bias_gradient(const Context&, const Program&, const Op&);
// Casts `count` elements from its one input to its one output. Used for libraries that need
// operands, or give results, in an element type that the op does not have.
std::unique_ptr<Kernel> make_cast_kernel(const Context&, DType from, DType to, std::int64_t count);
// Transposes a packed column-major matrix of one-byte elements whose sides are multiples of 16.
std::unique_ptr<Kernel> make_transpose_kernel(const Context&, std::int64_t rows,
                                              std::int64_t columns);

// Checks that this GPU can run the code compiled here.
cudaError_t find_kernel_code();

}  // namespace headroom::cuda
