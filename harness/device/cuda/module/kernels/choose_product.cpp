#include "harness/device/cuda/module/kernels/choose_product.h"

#include <algorithm>
#include <array>

#include "harness/base/error.h"

namespace headroom::cuda {
namespace {

// Limit of a workspace: the size NVIDIA recommends for Hopper.
constexpr std::uint64_t kWorkspaceLimit = 32 * kMiB;

cudaDataType_t cublas_type(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    case DType::f8e4m3:
      return CUDA_R_8F_E4M3;
    case DType::f8e5m2:
      return CUDA_R_8F_E5M2;
    default:
      return CUDA_R_32F;
  }
}

}  // namespace

MatrixLayout describe_matrix(const GemmMatrix& matrix, DType dtype, std::int64_t batch) {
  auto layout = make_owned<cublasLtMatrixLayoutDestroy>(
      cublasLtMatrixLayoutCreate, "a matrix", cublas_type(dtype),
      static_cast<std::uint64_t>(matrix.rows), static_cast<std::uint64_t>(matrix.columns),
      matrix.leading);
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
    require_success(
        cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, &value, sizeof(value)),
        "the batch of a matrix");
  };
  set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
  set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.stride);
  return layout;
}

std::uint32_t alignment_of(const GemmMatrix& matrix, std::int64_t step, DType type) {
  std::uint32_t aligned = 256;
  for (const std::int64_t distance : {matrix.stride, step})
    while (distance * static_cast<std::int64_t>(size_of(type)) % aligned != 0) aligned /= 2;
  return aligned;
}

std::optional<cublasLtMatmulHeuristicResult_t> choose_product_algorithm(
    cublasLtHandle_t cublas, cublasLtMatmulDesc_t product, const ProductMatrices& matrices,
    const std::string& op) {
  const auto preference =
      make_owned<cublasLtMatmulPreferenceDestroy>(cublasLtMatmulPreferenceCreate, "a preference");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    require_success(
        cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)),
        "a preference for a product");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceLimit);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, matrices.a.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, matrices.b.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, matrices.d.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, matrices.d.alignment);
  std::array<cublasLtMatmulHeuristicResult_t, 8> ranked{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      cublas, product, matrices.a.layout, matrices.b.layout, matrices.d.layout, matrices.d.layout,
      preference.get(), static_cast<int>(ranked.size()), ranked.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
  require_success(status, "to choose an algorithm for " + op);
  const auto end = ranked.begin() + found;
  const auto possible = std::find_if(
      ranked.begin(), end, [](const auto& one) { return one.state == CUBLAS_STATUS_SUCCESS; });
  if (possible == end) return std::nullopt;
  return *possible;
}

}  // namespace headroom::cuda
