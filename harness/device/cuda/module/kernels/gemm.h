// Converts products of row-major tensors into column-major products for cuBLAS. Works on plain
// numbers, so that the arguments can be tested without the library.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/program/program.h"

namespace headroom::cuda {

// A column-major matrix: element (i, j) is at i + j · leading. There are `batch` of them, `stride`
// apart. All in elements.
struct GemmMatrix {
  std::int64_t rows, columns, leading, stride;
};

// For each call and each b < batch: d = op(a) op(b) [+ bias, one number per row of d], where op
// transposes if requested.
struct Gemm {
  // Operand numbers of a and b in the op; d is its first output.
  std::size_t a, b;
  bool transpose_a, transpose_b;
  GemmMatrix of_a, of_b, of_d;
  std::int64_t batch = 1;
  // Number of calls, and how far each operand advances from one call to the next.
  std::int64_t calls = 1;
  std::array<std::int64_t, 3> steps = {};  // a, b, d
  bool has_bias = false;                   // operand 2
  // Operands that are read through a transposed copy, which of_a and of_b then describe. In 8 bits
  // cuBLASLt accepts only a transposed first factor and an untransposed second one.
  std::array<bool, 2> turned = {};  // a, b
};

// Supports linear, linear_backward_data, linear_backward_weights (dw only) and batched_matmul.
Gemm gemm_of(const Op& op, const Program& program);

}  // namespace headroom::cuda
