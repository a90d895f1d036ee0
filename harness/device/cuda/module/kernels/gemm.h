// Matrix products as cuBLAS takes them, column by column, worked out from row-major tensors. Plain
// numbers, so that what is handed to the library can be tested without it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/program/program.h"

namespace headroom::cuda {

// A matrix in columns: element (i, j) at i + j · leading; `batch` of them, `stride` apart. All in
// elements.
struct GemmMatrix {
  std::int64_t rows, columns, leading, stride;
};

// For each call and each b < batch: d = op(a) op(b) [+ bias, one number for each row of d], op
// being the transpose where it says so.
struct Gemm {
  // Where a, b and d are: as operand numbers of the op; d is its first output.
  std::size_t a, b;
  bool transpose_a, transpose_b;
  GemmMatrix of_a, of_b, of_d;
  std::int64_t batch = 1;
  // Calls one after another, and how far each operand goes on from one to the next.
  std::int64_t calls = 1;
  std::array<std::int64_t, 3> steps = {};  // a, b, d
  bool has_bias = false;                   // operand 2
  // Operands that are read through a transposed copy, which of_a and of_b then describe: of 8 bits
  // cuBLASLt takes the first factor transposed and the second as it is, and nothing else.
  std::array<bool, 2> turned = {};  // a, b
};

// Of linear, linear_backward_data, linear_backward_weights (dw only) and batched_matmul.
Gemm gemm_of(const Op& op, const Program& program);

}  // namespace headroom::cuda
