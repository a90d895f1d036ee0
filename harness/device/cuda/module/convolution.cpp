// Forward convolution by cuDNN, in true f32: its tensor-core formats would round the inputs.
// cuDNN's older interface, which version 9 keeps: its graph interface takes some two hundred lines
// for this one op.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/base/error.h"
#include "harness/device/cuda/module/kernel.h"

namespace headroom::cuda {
namespace {

using TensorDescriptor = Owned<cudnnTensorStruct, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Owned<cudnnFilterStruct, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Owned<cudnnConvolutionStruct, cudnnDestroyConvolutionDescriptor>;

TensorDescriptor describe(const Shape& shape, const Op& op) {
  auto tensor = make_owned<cudnnDestroyTensorDescriptor>(cudnnCreateTensorDescriptor, "a tensor");
  require_success(
      cudnnSetTensor4dDescriptor(tensor.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                 library_int(shape.at(0), op), library_int(shape.at(1), op),
                                 library_int(shape.at(2), op), library_int(shape.at(3), op)),
      "the shape of a tensor");
  return tensor;
}

FilterDescriptor describe_weights(const Shape& shape, const Op& op) {
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

class Convolution final : public Kernel {
 public:
  Convolution(const Context& context, const Program& program, const Op& op)
      : cudnn_(context.cudnn()),
        x_(describe(program.value(op.inputs.at(0)).shape, op)),
        w_(describe_weights(program.value(op.inputs.at(1)).shape, op)),
        y_(describe(program.value(op.outputs.at(0)).shape, op)),
        window_(describe_window(op)),
        algorithm_(choose(op)) {
    require_success(cudnnGetConvolutionForwardWorkspaceSize(
                        cudnn_, x_.get(), w_.get(), window_.get(), y_.get(), algorithm_, &bytes_),
                    "the workspace size of " + op.name);
  }

  Bytes workspace_bytes() const override { return bytes_; }

  void run(const OpBuffers& buffers) override {
    const float one = 1;
    const float zero = 0;
    require_success(
        cudnnConvolutionForward(cudnn_, &one, x_.get(), buffers.inputs[0], w_.get(),
                                buffers.inputs[1], window_.get(), algorithm_, buffers.workspace,
                                bytes_, &zero, y_.get(), buffers.outputs[0]),
        "a convolution");
  }

 private:
  // The fastest by cuDNN's own estimate that gives the same bits every time. Nothing is timed:
  // the choice, and with it the workspace, would change from run to run.
  cudnnConvolutionFwdAlgo_t choose(const Op& op) const {
    int count = 0;
    require_success(cudnnGetConvolutionForwardAlgorithmMaxCount(cudnn_, &count), "its algorithms");
    std::vector<cudnnConvolutionFwdAlgoPerf_t> ranked(static_cast<std::size_t>(count));
    require_success(
        cudnnGetConvolutionForwardAlgorithm_v7(cudnn_, x_.get(), w_.get(), window_.get(), y_.get(),
                                               count, &count, ranked.data()),
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
  TensorDescriptor x_;
  FilterDescriptor w_;
  TensorDescriptor y_;
  ConvolutionDescriptor window_;
  cudnnConvolutionFwdAlgo_t algorithm_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_convolution(const Context& context, const Program& program,
                                         const Op& op) {
  return std::make_unique<Convolution>(context, program, op);
}

}  // namespace headroom::cuda
