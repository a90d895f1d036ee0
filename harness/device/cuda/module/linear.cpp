// y = x wᵀ + b by cuBLASLt, which takes its workspace from the caller (cuBLAS itself allocates
// one of its own) and adds the bias on the way. True f32, no TF32.
#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/device/cuda/module/kernel.h"

namespace headroom::cuda {
namespace {

using Layout = Owned<cublasLtMatrixLayoutOpaque_t, cublasLtMatrixLayoutDestroy>;
using Matmul = Owned<cublasLtMatmulDescOpaque_t, cublasLtMatmulDescDestroy>;

// The most a workspace may take: what NVIDIA recommends for Hopper.
constexpr std::uint64_t kWorkspaceLimit = 32 * kMiB;

// cuBLAS thinks in columns: a row-major [rows, columns] tensor is its transpose there.
Layout describe(const Shape& shape) {
  const std::int64_t columns = shape.at(1);
  return make_owned<cublasLtMatrixLayoutDestroy>(cublasLtMatrixLayoutCreate, "a matrix", CUDA_R_32F,
                                                 static_cast<std::uint64_t>(columns),
                                                 static_cast<std::uint64_t>(shape.at(0)), columns);
}

class Linear final : public Kernel {
 public:
  Linear(const Context& context, const Program& program, const Op& op)
      : cublas_(context.cublas()),
        stream_(context.stream()),
        x_(describe(program.value(op.inputs.at(0)).shape)),
        w_(describe(program.value(op.inputs.at(1)).shape)),
        y_(describe(program.value(op.outputs.at(0)).shape)),
        matmul_(make_owned<cublasLtMatmulDescDestroy>(cublasLtMatmulDescCreate, "a product",
                                                      CUBLAS_COMPUTE_32F, CUDA_R_32F)) {
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    choose(op);
  }

  Bytes workspace_bytes() const override { return chosen_.workspaceSize; }

  void run(const OpBuffers& buffers) override {
    const float one = 1;
    const float zero = 0;
    const void* bias = buffers.inputs[2];
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    // In columns: yᵀ[O,N] = (wᵀ[I,O])ᵀ xᵀ[I,N] + b[O].
    require_success(
        cublasLtMatmul(cublas_, matmul_.get(), &one, buffers.inputs[1], w_.get(), buffers.inputs[0],
                       x_.get(), &zero, buffers.outputs[0], y_.get(), buffers.outputs[0], y_.get(),
                       &chosen_.algo, buffers.workspace, chosen_.workspaceSize, stream_),
        "a product");
  }

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    require_success(cublasLtMatmulDescSetAttribute(matmul_.get(), attribute, &value, sizeof(value)),
                    "a property of a product");
  }

  // The library's first choice; it assumes addresses aligned to 256 bytes, as all blocks are.
  void choose(const Op& op) {
    const auto preference =
        make_owned<cublasLtMatmulPreferenceDestroy>(cublasLtMatmulPreferenceCreate, "a preference");
    require_success(cublasLtMatmulPreferenceSetAttribute(preference.get(),
                                                         CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                         &kWorkspaceLimit, sizeof(kWorkspaceLimit)),
                    "a limit on workspaces");
    int found = 0;
    require_success(
        cublasLtMatmulAlgoGetHeuristic(cublas_, matmul_.get(), w_.get(), x_.get(), y_.get(),
                                       y_.get(), preference.get(), 1, &chosen_, &found),
        "to choose an algorithm for " + op.name);
    if (found == 0)
      throw DeviceError(fmt::format("{}: cuBLAS has no f32 algorithm for these shapes", op.name));
  }

  cublasLtHandle_t cublas_;
  cudaStream_t stream_;
  Layout x_;
  Layout w_;
  Layout y_;
  Matmul matmul_;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

}  // namespace

std::unique_ptr<Kernel> make_linear(const Context& context, const Program& program, const Op& op) {
  return std::make_unique<Linear>(context, program, op);
}

}  // namespace headroom::cuda
