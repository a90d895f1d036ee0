// The seam to nvcc: kernels of our own (work/) made for the GPU.
#pragma once

#include <string_view>

#include "harness/device/cuda/module/kernel.h"

namespace headroom::cuda {

std::vector<std::string_view> own_kinds();
// `op` is of one of them; it may have a condition.
std::unique_ptr<Kernel> make_own_kernel(const Context&, const Program&, const Op&);

// Parts of linear layers: db of linear_backward_weights, and of linear the bias in the result's
// element type, from the one input to the one output that it is run with.
std::unique_ptr<Kernel> make_bias_gradient(const Context&, const Program&, const Op&);
std::unique_ptr<Kernel> make_bias_cast(const Context&, const Program&, const Op&);

// Whether this GPU can run the code compiled here.
cudaError_t find_kernel_code();

}  // namespace headroom::cuda
