// Matrix products by cuBLASLt, which takes its workspace from the caller (cuBLAS allocates its own)
// and can add a bias in the same call. Sums are true f32, or TF32 when the op allows it.
//
// The workspace holds, in order: the bias in the type that the library adds, transposed copies of
// 8-bit operands, the addresses of matrices, and the library's own workspace.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "harness/base/error.h"
#include "harness/device/cuda/module/kernels/choose_product.h"
#include "harness/device/cuda/module/kernels/gemm.h"
#include "harness/device/cuda/module/kernels/kernel.h"
#include "harness/device/cuda/module/kernels/own_kernel.h"
#include "harness/device/device_memory.h"
#include "harness/program/tf32.h"

namespace headroom::cuda {
namespace {

cublasComputeType_t compute_type_of(const Op& op, DType type) {
  return type == DType::f32 && computes_in_tf32(op) ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                    : CUBLAS_COMPUTE_32F;
}

// GPUs have 8-bit products from this compute capability on.
constexpr int kEightBits = 89;

void require_8_bits(const Op& op) {
  const int found = compute_capability();
  if (found < kEightBits)
    throw NotSupported(
        fmt::format("{}: products in 8 bits need a GPU of compute capability 8.9 or newer; this "
                    "one has {}.{}. Take precision=bf16",
                    op.name, found / 10, found % 10));
}

class Product final : public Kernel {
 public:
  Product(const Context& context, const Program& program, const Op& op)
      : cublas_(context.cublas()),
        stream_(context.stream()),
        gemm_(gemm_of(op, program)),
        types_{program.value(op.inputs[gemm_.a]).dtype, program.value(op.inputs[gemm_.b]).dtype},
        result_type_(program.value(op.outputs[0]).dtype),
        a_(describe_matrix(gemm_.of_a, types_[0], library_int(gemm_.batch, op))),
        b_(describe_matrix(gemm_.of_b, types_[1], gemm_.batch)),
        d_(describe_matrix(gemm_.of_d, result_type_, gemm_.batch)),
        matmul_(make_owned<cublasLtMatmulDescDestroy>(cublasLtMatmulDescCreate, "a product",
                                                      compute_type_of(op, types_[0]), CUDA_R_32F)) {
    set(CUBLASLT_MATMUL_DESC_TRANSA, gemm_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, gemm_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (gemm_.has_bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      // This pointer is not read yet; it tells the choice below how the bias will be aligned
      // (cublasLt.h at CUBLASLT_MATMUL_DESC_BIAS_POINTER), which is the alignment of every block.
      const std::uintptr_t aligned = kBlockAlignment;
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, aligned);
      // The library adds a bias only in the result's element type.
      if (result_type_ != DType::f32) {
        Value bias = program.value(op.inputs.at(2));
        bias.dtype = result_type_;
        cast_bias_ = make_cast_kernel(context, program.value(op.inputs.at(2)), bias);
      }
    }
    if (is_f8(types_[0])) scale(op);
    if (!choose_by_addresses(context, op) && !choose(op)) choose_without_bias(context, program, op);
    if (cast_bias_ != nullptr)
      copy_bytes_ += align_up(static_cast<Bytes>(gemm_.of_d.rows) * size_of(result_type_), 256);
    turn(context, 0, gemm_.of_a);
    turn(context, 1, gemm_.of_b);
  }

  Bytes workspace_bytes() const override { return copy_bytes_ + chosen_.workspaceSize; }

  void run(const OpBuffers& buffers) override {
    if (gemm_.has_bias && add_bias_ == nullptr) set_bias(buffers);
    if (!scales_.empty()) set_scales(buffers);
    std::byte* const a = as_read(buffers, 0, gemm_.a);
    std::byte* const b = as_read(buffers, 1, gemm_.b);
    if (addresses_ != nullptr) {
      const std::array<std::byte*, 2> in = {a, b}, out = {buffers.outputs[0], buffers.workspace};
      addresses_->run({.inputs = in, .outputs = out});
      const Bytes each = table_bytes() / 3;
      multiply(buffers, buffers.workspace, buffers.workspace + each, buffers.workspace + 2 * each);
    } else {
      for (std::int64_t call = 0; call < gemm_.calls; ++call) {
        const auto at = [&](std::byte* data, std::size_t operand) {
          return data + call * bytes_of(gemm_.steps[operand], operand);
        };
        multiply(buffers, at(a, 0), at(b, 1), at(buffers.outputs[0], 2));
      }
    }
    if (add_bias_ != nullptr)
      add_bias_->run({.inputs = buffers.inputs.subspan(2, 1), .outputs = buffers.outputs});
  }

 private:
  void multiply(const OpBuffers& buffers, const void* a, const void* b, void* d) {
    const float one = 1;
    const float zero = 0;
    require_success(cublasLtMatmul(cublas_, matmul_.get(), &one, a, a_.get(), b, b_.get(), &zero, d,
                                   d_.get(), d, d_.get(), &chosen_.algo,
                                   buffers.workspace + copy_bytes_, chosen_.workspaceSize, stream_),
                    "a product");
  }

  std::int64_t bytes_of(std::int64_t elements, std::size_t operand) const {
    const DType type = operand == 2 ? result_type_ : types_[operand];
    return elements * static_cast<std::int64_t>(size_of(type));
  }

  // Size of the table with the addresses of all matrices of the three operands.
  Bytes table_bytes() const {
    return 3 * static_cast<Bytes>(gemm_.calls * gemm_.batch) * sizeof(std::byte*);
  }

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    require_success(cublasLtMatmulDescSetAttribute(matmul_.get(), attribute, &value, sizeof(value)),
                    "a property of a product");
  }

  void set_bias(const OpBuffers& buffers) {
    std::byte* bias = buffers.inputs[2];
    if (cast_bias_ != nullptr) {
      cast_bias_->run({.inputs = {&bias, 1}, .outputs = {&buffers.workspace, 1}});
      bias = buffers.workspace;
    }
    const void* const pointer = bias;
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointer);
  }

  // The scales of both factors are the last operands, in the op's order. The library reads them
  // through pointers, whose targets are not known yet.
  void scale(const Op& op) {
    require_8_bits(op);
    scales_ = {op.inputs.size() - 2 + gemm_.a, op.inputs.size() - 2 + gemm_.b};
    const std::uintptr_t aligned = kBlockAlignment;
    for (const auto attribute : kScalePointers) set(attribute, aligned);
  }

  void set_scales(const OpBuffers& buffers) {
    for (std::size_t i = 0; i < scales_.size(); ++i) {
      const void* const pointer = buffers.inputs[scales_[i]];
      set(kScalePointers[i], pointer);
    }
  }

  // `matrix` describes the transposed copy, if there is one.
  void turn(const Context& context, std::size_t operand, const GemmMatrix& matrix) {
    if (!gemm_.turned[operand]) return;
    turns_[operand] = {make_transpose_kernel(context, matrix.columns, matrix.rows), copy_bytes_};
    copy_bytes_ += align_up(static_cast<Bytes>(matrix.rows * matrix.columns), 256);
  }

  std::byte* as_read(const OpBuffers& buffers, std::size_t operand, std::size_t input) {
    std::byte* const given = buffers.inputs[input];
    const auto& [kernel, begin] = turns_[operand];
    if (kernel == nullptr) return given;
    std::byte* const copy = buffers.workspace + begin;
    kernel->run({.inputs = {&given, 1}, .outputs = {&copy, 1}});
    return copy;
  }

  // Chooses one call for the matrices of all samples and heads, whose addresses a kernel writes to
  // a table. Returns false where one stride leads from matrix to matrix, and where cuBLAS has no
  // such call.
  bool choose_by_addresses(const Context& context, const Op& op) {
    if (gemm_.calls == 1) return false;
    // CUBLASLT_MATRIX_LAYOUT_BATCH_MODE and its value for addresses; older headers lack the names.
    constexpr auto kBatchMode = static_cast<cublasLtMatrixLayoutAttribute_t>(8);
    constexpr std::uint32_t kPointerArray = 1;
    const std::int64_t matrices = library_int(gemm_.calls * gemm_.batch, op);
    std::array layouts = {describe_matrix(gemm_.of_a, types_[0], matrices),
                          describe_matrix(gemm_.of_b, types_[1], matrices),
                          describe_matrix(gemm_.of_d, result_type_, matrices)};
    for (const MatrixLayout& layout : layouts)
      if (cublasLtMatrixLayoutSetAttribute(layout.get(), kBatchMode, &kPointerArray,
                                           sizeof(kPointerArray)) != CUBLAS_STATUS_SUCCESS)
        return false;
    const auto exchange = [&] {
      std::swap(a_, layouts[0]);
      std::swap(b_, layouts[1]);
      std::swap(d_, layouts[2]);
    };
    exchange();
    if (!choose(op)) {
      exchange();
      return false;
    }
    const auto place = [&](const GemmMatrix& matrix, std::size_t operand) {
      return MatrixPlace{bytes_of(gemm_.steps[operand], operand), bytes_of(matrix.stride, operand)};
    };
    addresses_ =
        make_matrix_addresses(context, gemm_.calls, gemm_.batch,
                              {place(gemm_.of_a, 0), place(gemm_.of_b, 1), place(gemm_.of_d, 2)});
    copy_bytes_ += align_up(table_bytes(), 256);
    return true;
  }

  bool choose(const Op& op) {
    const auto found = choose_product_algorithm(
        cublas_, matmul_.get(),
        {.a = {a_.get(), alignment_of(gemm_.of_a, gemm_.steps[0], types_[0])},
         .b = {b_.get(), alignment_of(gemm_.of_b, gemm_.steps[1], types_[1])},
         .d = {d_.get(), alignment_of(gemm_.of_d, gemm_.steps[2], result_type_)}},
        op.name);
    if (found) chosen_ = *found;
    return found.has_value();
  }

  // Adds the bias by a kernel of our own after the product, if the library does not in one call.
  void choose_without_bias(const Context& context, const Program& program, const Op& op) {
    if (gemm_.has_bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
      if (choose(op)) {
        cast_bias_ = nullptr;
        add_bias_ = make_add_bias_kernel(context, program.value(op.outputs[0]));
        return;
      }
    }
    throw NotSupported(fmt::format("{}: cuBLAS has no {} algorithm for these shapes", op.name,
                                   to_string(types_[0])));
  }

  static constexpr std::array kScalePointers = {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                                                CUBLASLT_MATMUL_DESC_B_SCALE_POINTER};

  struct Turn {
    std::unique_ptr<Kernel> kernel;  // copies into the workspace; null if not needed
    Bytes begin = 0;
  };

  cublasLtHandle_t cublas_;
  cudaStream_t stream_;
  Gemm gemm_;
  std::array<DType, 2> types_;  // a, b
  DType result_type_;
  MatrixLayout a_, b_, d_;
  Matmul matmul_;
  std::unique_ptr<Kernel> cast_bias_;  // casts the bias into the workspace
  std::unique_ptr<Kernel> add_bias_;   // null when the product adds it
  std::unique_ptr<Kernel> addresses_;  // null when strides lead from matrix to matrix
  std::array<Turn, 2> turns_;          // a and b
  std::vector<std::size_t> scales_;    // operand numbers of the scales of a and b, in 8 bits only
  Bytes copy_bytes_ = 0;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

// dw is a product and db a sum; they run one after the other in the same workspace.
class LinearBackwardWeights final : public Kernel {
 public:
  LinearBackwardWeights(const Context& context, const Program& program, const Op& op)
      : product_(context, program, op), bias_(make_bias_gradient(context, program, op)) {}

  Bytes workspace_bytes() const override {
    return std::max(product_.workspace_bytes(), bias_->workspace_bytes());
  }
  void run(const OpBuffers& buffers) override {
    product_.run(buffers);
    bias_->run(buffers);
  }

 private:
  Product product_;
  std::unique_ptr<Kernel> bias_;
};

}  // namespace

std::unique_ptr<Kernel> make_matmul(const Context& context, const Program& program, const Op& op) {
  return std::make_unique<Product>(context, program, op);
}

std::unique_ptr<Kernel> make_linear_backward_weights(const Context& context, const Program& program,
                                                     const Op& op) {
  return std::make_unique<LinearBackwardWeights>(context, program, op);
}

}  // namespace headroom::cuda
