// Convolutions and their gradients by cuDNN, in true f32: its tensor-core formats would round the
// inputs. cuDNN's older interface, which version 9 keeps: its graph interface takes some two
// hundred lines for one of these.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <vector>

#include "harness/base/error.h"
#include "harness/device/cuda/module/kernel.h"

namespace headroom::cuda {
namespace {

using TensorDescriptor = Owned<cudnnTensorStruct, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Owned<cudnnFilterStruct, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Owned<cudnnConvolutionStruct, cudnnDestroyConvolutionDescriptor>;

void require_f32(const Value& value, const Op& op) {
  if (value.dtype != DType::f32)
    throw InputError(
        fmt::format("{}: convolutions compute in f32 on device cuda so far, not in {}; run this "
                    "with precision fp32",
                    op.name, to_string(value.dtype)));
}

TensorDescriptor describe(const Value& value, const Op& op) {
  require_f32(value, op);
  const Shape& shape = value.shape;
  auto tensor = make_owned<cudnnDestroyTensorDescriptor>(cudnnCreateTensorDescriptor, "a tensor");
  require_success(
      cudnnSetTensor4dDescriptor(tensor.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                 library_int(shape.at(0), op), library_int(shape.at(1), op),
                                 library_int(shape.at(2), op), library_int(shape.at(3), op)),
      "the shape of a tensor");
  return tensor;
}

FilterDescriptor describe_weights(const Value& value, const Op& op) {
  require_f32(value, op);
  const Shape& shape = value.shape;
  auto filter = make_owned<cudnnDestroyFilterDescriptor>(cudnnCreateFilterDescriptor, "weights");
  require_success(
      cudnnSetFilter4dDescriptor(filter.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                 library_int(shape.at(0), op), library_int(shape.at(1), op),
                                 library_int(shape.at(2), op), library_int(shape.at(3), op)),
      "the shape of the weights");
  return filter;
}

ConvolutionDescriptor describe_window(const Op& op) {
  const auto& strides = op.list("strides");
  const auto& padding = op.list("padding");  // top, left, bottom, right
  if (padding.at(0) != padding.at(2) || padding.at(1) != padding.at(3))
    throw InputError(
        fmt::format("{}: padding [{}] differs between sides, which cuDNN's "
                    "convolution cannot take",
                    op.name, fmt::join(padding, ",")));
  auto window = make_owned<cudnnDestroyConvolutionDescriptor>(cudnnCreateConvolutionDescriptor,
                                                              "a convolution");
  require_success(cudnnSetConvolution2dDescriptor(
                      window.get(), library_int(padding.at(0), op), library_int(padding.at(1), op),
                      library_int(strides.at(0), op), library_int(strides.at(1), op), 1, 1,
                      CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                  "the window of a convolution");
  require_success(cudnnSetConvolutionMathType(window.get(), CUDNN_FMA_MATH), "f32 arithmetic");
  return window;
}

// The three calls that differ between the passes of a convolution; operands in the op's order.
struct Forward {
  using Ranked = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr auto kCount = cudnnGetConvolutionForwardAlgorithmMaxCount;
  static constexpr auto kRank = cudnnGetConvolutionForwardAlgorithm_v7;
  static constexpr auto kSize = cudnnGetConvolutionForwardWorkspaceSize;
  static constexpr auto kRun = cudnnConvolutionForward;

  TensorDescriptor first;   // x
  FilterDescriptor second;  // w
  TensorDescriptor result;  // y
  Forward(const Program& program, const Op& op)
      : first(describe(program.value(op.inputs.at(0)), op)),
        second(describe_weights(program.value(op.inputs.at(1)), op)),
        result(describe(program.value(op.outputs.at(0)), op)) {}
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
  BackwardWeights(const Program& program, const Op& op)
      : first(describe(program.value(op.inputs.at(0)), op)),
        second(describe(program.value(op.inputs.at(1)), op)),
        result(describe_weights(program.value(op.outputs.at(0)), op)) {}
};

// cuDNN wants the weights first, the op has dy first. A transposed convolution is this pass with x
// for dy.
struct BackwardData {
  using Ranked = cudnnConvolutionBwdDataAlgoPerf_t;
  static constexpr auto kCount = cudnnGetConvolutionBackwardDataAlgorithmMaxCount;
  static constexpr auto kRank = cudnnGetConvolutionBackwardDataAlgorithm_v7;
  static constexpr auto kSize = cudnnGetConvolutionBackwardDataWorkspaceSize;
  static constexpr auto kRun = cudnnConvolutionBackwardData;

  FilterDescriptor first;   // w
  TensorDescriptor second;  // dy
  TensorDescriptor result;  // dx
  BackwardData(const Program& program, const Op& op)
      : first(describe_weights(program.value(op.inputs.at(1)), op)),
        second(describe(program.value(op.inputs.at(0)), op)),
        result(describe(program.value(op.outputs.at(0)), op)) {}
};

template <typename Pass>
class Convolution final : public Kernel {
 public:
  Convolution(const Context& context, const Program& program, const Op& op)
      : cudnn_(context.cudnn()), pass_(program, op), window_(describe_window(op)) {
    algorithm_ = choose(op);
    require_success(Pass::kSize(cudnn_, pass_.first.get(), pass_.second.get(), window_.get(),
                                pass_.result.get(), algorithm_, &bytes_),
                    "the workspace size of " + op.name);
  }

  Bytes workspace_bytes() const override { return bytes_; }

  void run(const OpBuffers& buffers) override {
    constexpr bool kWeightsFirst = std::is_same_v<Pass, BackwardData>;
    const float one = 1;
    const float zero = 0;
    require_success(
        Pass::kRun(cudnn_, &one, pass_.first.get(), buffers.inputs[kWeightsFirst ? 1 : 0],
                   pass_.second.get(), buffers.inputs[kWeightsFirst ? 0 : 1], window_.get(),
                   algorithm_, buffers.workspace, bytes_, &zero, pass_.result.get(),
                   buffers.outputs[0]),
        "a convolution");
  }

 private:
  using Ranked = typename Pass::Ranked;

  // The fastest by cuDNN's own estimate that gives the same bits every time. Nothing is timed:
  // the choice, and with it the workspace, would change from run to run.
  auto choose(const Op& op) const {
    int count = 0;
    require_success(Pass::kCount(cudnn_, &count), "its algorithms");
    std::vector<Ranked> ranked(static_cast<std::size_t>(count));
    require_success(Pass::kRank(cudnn_, pass_.first.get(), pass_.second.get(), window_.get(),
                                pass_.result.get(), count, &count, ranked.data()),
                    "to rank its algorithms for " + op.name);
    ranked.resize(static_cast<std::size_t>(count));
    const auto best = std::find_if(ranked.begin(), ranked.end(), [](const auto& candidate) {
      return candidate.status == CUDNN_STATUS_SUCCESS &&
             candidate.determinism == CUDNN_DETERMINISTIC &&
             (candidate.mathType == CUDNN_FMA_MATH || candidate.mathType == CUDNN_DEFAULT_MATH);
    });
    if (best == ranked.end())
      throw DeviceError(
          fmt::format("{}: cuDNN has no deterministic f32 algorithm for these shapes", op.name));
    return best->algo;
  }

  cudnnHandle_t cudnn_;
  Pass pass_;
  ConvolutionDescriptor window_;
  decltype(Ranked::algo) algorithm_;
  std::size_t bytes_ = 0;
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
