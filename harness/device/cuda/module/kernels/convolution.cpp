// Convolutions and their gradients by cuDNN: in true f32 unless the op allows TF32, or in 16 bits
// with f32 sums. Uses cuDNN's legacy interface, which version 9 keeps, because the graph interface
// needs some two hundred lines for each of these. The legacy interface requires one element type
// for all operands, so weight gradients, which stay f32, are rounded to 16 bits when x and dy are.
// Beside channels-last images it requires weights whose channels are innermost; the Program's are
// row-major, and are turned in the workspace.
//
// A batch that is too large for cuDNN's tensors takes several calls. For weight gradients each call
// adds to the result of those before, in 16 bits where the operands have 16 bits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <type_traits>
#include <vector>

#include "harness/base/error.h"
#include "harness/device/cuda/module/kernels/convolution_descriptors.h"
#include "harness/device/cuda/module/kernels/kernel.h"
#include "harness/device/cuda/module/kernels/own_kernel.h"
#include "harness/program/lowering/workspace_limit.h"
#include "harness/program/tf32.h"

namespace headroom::cuda {
namespace {

// The three passes of a convolution, each with its own cuDNN call. Operands are in the op's order
// and share one element type.
struct Forward {
  using Ranked = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr auto kCount = cudnnGetConvolutionForwardAlgorithmMaxCount;
  static constexpr auto kRank = cudnnGetConvolutionForwardAlgorithm_v7;
  static constexpr auto kSize = cudnnGetConvolutionForwardWorkspaceSize;
  static constexpr auto kRun = cudnnConvolutionForward;

  TensorDescriptor first;   // x
  FilterDescriptor second;  // w
  TensorDescriptor result;  // y
  static constexpr bool kSumsImages = false;
  Forward(const Program& program, const Op& op, DType type, std::int64_t images)
      : first(describe_tensor(program.value(op.inputs.at(0)), images, type, op)),
        second(describe_weights(program.value(op.inputs.at(1)), program.value(op.inputs.at(0)),
                                type, op)),
        result(describe_tensor(program.value(op.outputs.at(0)), images, type, op)) {}
};

struct BackwardWeights {
  using Ranked = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr auto kCount = cudnnGetConvolutionBackwardFilterAlgorithmMaxCount;
  static constexpr auto kRank = cudnnGetConvolutionBackwardFilterAlgorithm_v7;
  static constexpr auto kSize = cudnnGetConvolutionBackwardFilterWorkspaceSize;
  static constexpr auto kRun = cudnnConvolutionBackwardFilter;

  TensorDescriptor first;   // x
  TensorDescriptor second;  // dy
  FilterDescriptor result;  // dw
  static constexpr bool kSumsImages = true;
  BackwardWeights(const Program& program, const Op& op, DType type, std::int64_t images)
      : first(describe_tensor(program.value(op.inputs.at(0)), images, type, op)),
        second(describe_tensor(program.value(op.inputs.at(1)), images, type, op)),
        result(describe_weights(program.value(op.outputs.at(0)), program.value(op.inputs.at(0)),
                                type, op)) {}
};

// cuDNN takes the weights first, the op takes dy first. A transposed convolution is this pass with
// x in place of dy.
struct BackwardData {
  using Ranked = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr auto kCount = cudnnGetConvolutionBackwardDataAlgorithmMaxCount;
  static constexpr auto kRank = cudnnGetConvolutionBackwardDataAlgorithm_v7;
  static constexpr auto kSize = cudnnGetConvolutionBackwardDataWorkspaceSize;
  static constexpr auto kRun = cudnnConvolutionBackwardData;

  FilterDescriptor first;   // w
  TensorDescriptor second;  // dy
  TensorDescriptor result;  // dx
  static constexpr bool kSumsImages = false;
  BackwardData(const Program& program, const Op& op, DType type, std::int64_t images)
      : first(describe_weights(program.value(op.inputs.at(1)), program.value(op.inputs.at(0)), type,
                               op)),
        second(describe_tensor(program.value(op.inputs.at(0)), images, type, op)),
        result(describe_tensor(program.value(op.outputs.at(0)), images, type, op)) {}
};

Arithmetic arithmetic_of(const Op& op, DType type) {
  if (type != DType::f32) return Arithmetic::sixteen_bits;
  return computes_in_tf32(op) ? Arithmetic::tf32 : Arithmetic::f32;
}

// The tensors that contain images: a pass's first input and, except for weight gradients, its
// result.
std::vector<const Value*> tensors_with_images(const Program& program, const Op& op,
                                              bool sums_images) {
  return {&program.value(op.inputs.at(0)),
          &program.value(sums_images ? op.inputs.at(1) : op.outputs.at(0))};
}

template <typename Pass>
class Convolution final : public Kernel {
 public:
  Convolution(const Context& context, const Program& program, const Op& op)
      : cudnn_(context.cudnn()),
        type_(program.value(op.inputs.at(0)).dtype),
        arithmetic_(arithmetic_of(op, type_)),
        images_(images_a_call(tensors_with_images(program, op, Pass::kSumsImages), type_, op)),
        pass_(program, op, type_, images_),
        window_(describe_window(op)) {
    choose(op);
    const auto tensors = tensors_with_images(program, op, Pass::kSumsImages);
    calls_ = tensors[0]->shape.at(0) / images_;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      steps_[i] =
          element_count(tensors[i]->shape) / calls_ * static_cast<std::int64_t>(size_of(type_));
    prepare_weights(context, program, op);
  }

  // The weights, or their gradient, as cuDNN takes them if the op's are others; then cuDNN's
  // workspace.
  Bytes workspace_bytes() const override { return weights_bytes_ + bytes_; }

  void run(const OpBuffers& buffers) override {
    std::byte* const result = cast_result_ == nullptr ? buffers.outputs[0] : buffers.workspace;
    std::byte* const weights = cast_weights_ == nullptr ? buffers.inputs[1] : buffers.workspace;
    if (cast_weights_ != nullptr)
      cast_weights_->run({.inputs = buffers.inputs.subspan(1, 1), .outputs = {&weights, 1}});
    for (std::int64_t call = 0; call < calls_; ++call) {
      std::byte* const images = buffers.inputs[0] + call * steps_[0];
      if constexpr (Pass::kSumsImages)
        run_once(buffers, images, buffers.inputs[1] + call * steps_[1], result, call > 0 ? 1 : 0);
      else if constexpr (std::is_same_v<Pass, BackwardData>)
        run_once(buffers, weights, images, result + call * steps_[1], 0);
      else
        run_once(buffers, images, weights, result + call * steps_[1], 0);
    }
    if (cast_result_ != nullptr)
      cast_result_->run({.inputs = {&result, 1}, .outputs = buffers.outputs.first(1)});
  }

 private:
  using Ranked = typename Pass::Ranked;

  void prepare_weights(const Context& context, const Program& program, const Op& op) {
    const Value& weights = program.value(Pass::kSumsImages ? op.outputs.at(0) : op.inputs.at(1));
    Value taken = weights;
    taken.dtype = type_;
    if (weights.shape.at(2) * weights.shape.at(3) > 1)  // otherwise both orders are the same
      taken.layout = program.value(op.inputs.at(0)).layout;
    if (taken.dtype == weights.dtype && taken.layout == weights.layout) return;
    if (Pass::kSumsImages)
      cast_result_ = make_cast_kernel(context, taken, weights);
    else
      cast_weights_ = make_cast_kernel(context, weights, taken);
    weights_bytes_ = align_up(static_cast<Bytes>(element_count(taken.shape)) * size_of(type_), 256);
  }

  // Multiplies the old result by `kept`, then adds the products.
  void run_once(const OpBuffers& buffers, const std::byte* first, const std::byte* second,
                std::byte* result, float kept) {
    const float one = 1;
    require_success(Pass::kRun(cudnn_, &one, pass_.first.get(), first, pass_.second.get(), second,
                               window_.get(), algorithm_, buffers.workspace + weights_bytes_,
                               bytes_, &kept, pass_.result.get(), result),
                    "a convolution");
  }

  void set_math(cudnnMathType_t math) {
    require_success(cudnnSetConvolutionMathType(window_.get(), math),
                    "the arithmetic of a convolution");
  }

  std::vector<Ranked> rank(const Op& op) {
    set_math(library_math(instructions_for(arithmetic_)));
    int count = 0;
    require_success(Pass::kCount(cudnn_, &count), "its algorithms");
    std::vector<Ranked> ranked(static_cast<std::size_t>(count));
    const cudnnStatus_t status =
        Pass::kRank(cudnn_, pass_.first.get(), pass_.second.get(), window_.get(),
                    pass_.result.get(), count, &count, ranked.data());
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return {};
    require_success(status, "to rank its algorithms for " + op.name);
    ranked.resize(static_cast<std::size_t>(count));
    return ranked;
  }

  // Takes cuDNN's own estimate of the fastest algorithm. Timing the algorithms would let the
  // choice, and with it the workspace, change from run to run.
  void choose(const Op& op) {
    const std::vector<Ranked> ranked = rank(op);
    std::vector<RankedAlgorithm> candidates;
    for (const Ranked& one : ranked)
      candidates.push_back({.runs = one.status == CUDNN_STATUS_SUCCESS,
                            .deterministic = one.determinism == CUDNN_DETERMINISTIC,
                            .instructions = instructions_of(one.mathType)});
    const std::optional<Bytes> limit = workspace_limit(op);
    const auto chosen = choose_algorithm(candidates, arithmetic_, limit, [&](std::size_t i) {
      return workspace_of(ranked[i].algo, ranked[i].mathType);
    });
    if (!chosen && limit)
      throw NotSupported(
          fmt::format("{}: cuDNN has no deterministic {} algorithm for these shapes with a "
                      "workspace of at most {}; raise workspace_limit. It ranked {}",
                      op.name, name_of(arithmetic_, type_), format_bytes(*limit), list(ranked)));
    if (!chosen)
      throw NotSupported(
          fmt::format("{}: cuDNN has no deterministic {} algorithm for these shapes. It ranked {}",
                      op.name, name_of(arithmetic_, type_), list(ranked)));
    algorithm_ = ranked[chosen->index].algo;
    bytes_ = chosen->workspace;
  }

  static std::string list(const std::vector<Ranked>& ranked) {
    std::vector<std::string> lines;
    for (const Ranked& one : ranked)
      lines.push_back(fmt::format("algorithm {} ({}{}, math type {}, workspace {})",
                                  static_cast<int>(one.algo),
                                  one.status == CUDNN_STATUS_SUCCESS ? "runs" : "does not run",
                                  one.determinism == CUDNN_DETERMINISTIC ? ", deterministic" : "",
                                  static_cast<int>(one.mathType), format_bytes(one.memory)));
    return lines.empty() ? "none" : fmt::format("{}", fmt::join(lines, ", "));
  }

  // Sets the math type that the algorithm was ranked with, and leaves it set. In f32 that is always
  // fma, because the standard math type may be TF32.
  std::optional<Bytes> workspace_of(decltype(Ranked::algo) algorithm, cudnnMathType_t math) {
    if (arithmetic_ != Arithmetic::f32) set_math(math);
    std::size_t bytes = 0;
    if (Pass::kSize(cudnn_, pass_.first.get(), pass_.second.get(), window_.get(),
                    pass_.result.get(), algorithm, &bytes) != CUDNN_STATUS_SUCCESS)
      return std::nullopt;
    return bytes;
  }

  cudnnHandle_t cudnn_;
  DType type_;  // element type of the operands
  Arithmetic arithmetic_;
  std::int64_t images_;  // images per call
  Pass pass_;
  ConvolutionDescriptor window_;
  decltype(Ranked::algo) algorithm_{};
  std::size_t bytes_ = 0;
  std::unique_ptr<Kernel> cast_weights_;  // to the workspace; null if not needed
  std::unique_ptr<Kernel> cast_result_;   // from the workspace; null if not needed
  Bytes weights_bytes_ = 0;
  std::int64_t calls_ = 1;
  // Bytes that each of tensors_with_images() advances per call.
  std::array<std::int64_t, 2> steps_ = {};
};

}  // namespace

std::unique_ptr<Kernel> make_convolution(const Context& context, const Program& program,
                                         const Op& op) {
  return std::make_unique<Convolution<Forward>>(context, program, op);
}

std::unique_ptr<Kernel> make_convolution_backward_data(const Context& context,
                                                       const Program& program, const Op& op) {
  return std::make_unique<Convolution<BackwardData>>(context, program, op);
}

std::unique_ptr<Kernel> make_convolution_backward_weights(const Context& context,
                                                          const Program& program, const Op& op) {
  return std::make_unique<Convolution<BackwardWeights>>(context, program, op);
}

}  // namespace headroom::cuda
