// The seam to nvcc: kernels of our own (work/) made for the GPU.
#pragma once

#include <string_view>

#include "harness/device/cuda/module/kernels/kernel.h"

namespace headroom::cuda {

std::vector<std::string_view> own_kinds();
// `op` is of one of them; it may have a condition.
std::unique_ptr<Kernel> make_own_kernel(const Context&, const Program&, const Op&);

// db of linear_backward_weights.
std::unique_ptr<Kernel> make_bias_gradient(const Context&, const Program&, const Op&);
// So many elements in another type, from the one input to the one output that it is run with. For
// libraries that want their operands, or give their results, in a type that the op does not have.
std::unique_ptr<Kernel> make_cast_kernel(const Context&, DType from, DType to, std::int64_t count);
// The transpose of a packed matrix in columns, elements of one byte, sides multiples of 16.
std::unique_ptr<Kernel> make_transpose_kernel(const Context&, std::int64_t rows,
                                              std::int64_t columns);

// Whether this GPU can run the code compiled here.
cudaError_t find_kernel_code();

}  // namespace headroom::cuda
