// The interface to nvcc: our own kernels (work/) built for the GPU.
#pragma once

#include <string_view>

#include "harness/device/cuda/module/kernels/kernel.h"
#include "harness/device/cuda/module/work/matrix_places.h"

namespace headroom::cuda {

std::vector<std::string_view> own_kinds();
// `op` must be of one of our own kinds; it may have a condition.
std::unique_ptr<Kernel> make_own_kernel(const Context&, const Program&, const Op&);

// Computes db of linear_backward_weights.
std::unique_ptr<Kernel> make_bias_gradient(const Context&, const Program&, const Op&);
// Adds its one input, a bias in f32, to every row of its output, a tensor like `y`.
std::unique_ptr<Kernel> make_add_bias_kernel(const Context&, const Value& y);
// Casts its one input to its one output: a value like `from` to one like `to`, of the same shape.
// Used for libraries that need operands, or give results, in an element type or a layout that the
// op's do not have.
std::unique_ptr<Kernel> make_cast_kernel(const Context&, const Value& from, const Value& to);
// Transposes a packed column-major matrix of one-byte elements whose sides are multiples of 16.
std::unique_ptr<Kernel> make_transpose_kernel(const Context&, std::int64_t rows,
                                              std::int64_t columns);

// Writes the addresses of `calls` times `batch` matrices of three operands to a table in the GPU's
// memory: inputs are the first two operands, outputs the third one and the table.
std::unique_ptr<Kernel> make_matrix_addresses(const Context&, std::int64_t calls,
                                              std::int64_t batch, const MatrixPlaces& places);

// Version of CUB that nvcc compiled, which decides how much workspace our own kernels take:
// 3000001 is 3.0.1.
int cccl_version();

// Checks that this GPU can run the code compiled here.
cudaError_t find_kernel_code();

}  // namespace headroom::cuda
