// The matrices of a product as cuBLASLt describes them, and the choice of its algorithm.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <optional>
#include <string>

#include "harness/device/cuda/module/kernels/gemm.h"
#include "harness/device/cuda/module/kernels/kernel.h"

namespace headroom::cuda {

using MatrixLayout = Owned<cublasLtMatrixLayoutOpaque_t, cublasLtMatrixLayoutDestroy>;
using Matmul = Owned<cublasLtMatmulDescOpaque_t, cublasLtMatmulDescDestroy>;

MatrixLayout describe_matrix(const GemmMatrix& matrix, DType dtype, std::int64_t batch);

// Returns the alignment in bytes of every one of the matrices, `step` elements apart from call to
// call. Blocks are aligned to 256 bytes; matrices inside them are aligned as their strides are.
std::uint32_t alignment_of(const GemmMatrix& matrix, std::int64_t step, DType type);

struct ProductMatrix {
  cublasLtMatrixLayout_t layout;
  std::uint32_t alignment;
};
struct ProductMatrices {
  ProductMatrix a, b, d;
};

// Returns the first algorithm in the library's list that the library calls possible; nothing if
// there is none. Timing the algorithms would let the choice change from run to run. Errors name
// `op`.
std::optional<cublasLtMatmulHeuristicResult_t> choose_product_algorithm(
    cublasLtHandle_t cublas, cublasLtMatmulDesc_t product, const ProductMatrices& matrices,
    const std::string& op);

}  // namespace headroom::cuda
