#include "harness/device/cuda/module/kernels/convolution_descriptors.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/device/cuda/module/kernels/kernel.h"

namespace headroom::cuda {
namespace {

cudnnDataType_t library_type(DType type) {
  if (type == DType::bf16) return CUDNN_DATA_BFLOAT16;
  return type == DType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

}  // namespace

TensorDescriptor describe_tensor(const Value& value, DType type, const Op& op) {
  const Shape& shape = value.shape;
  auto tensor = make_owned<cudnnDestroyTensorDescriptor>(cudnnCreateTensorDescriptor, "a tensor");
  require_success(
      cudnnSetTensor4dDescriptor(tensor.get(), CUDNN_TENSOR_NCHW, library_type(type),
                                 library_int(shape.at(0), op), library_int(shape.at(1), op),
                                 library_int(shape.at(2), op), library_int(shape.at(3), op)),
      "the shape of a tensor");
  return tensor;
}

FilterDescriptor describe_weights(const Value& value, DType type, const Op& op) {
  const Shape& shape = value.shape;
  auto filter = make_owned<cudnnDestroyFilterDescriptor>(cudnnCreateFilterDescriptor, "weights");
  require_success(
      cudnnSetFilter4dDescriptor(filter.get(), library_type(type), CUDNN_TENSOR_NCHW,
                                 library_int(shape.at(0), op), library_int(shape.at(1), op),
                                 library_int(shape.at(2), op), library_int(shape.at(3), op)),
      "the shape of the weights");
  return filter;
}

ConvolutionDescriptor describe_window(const Op& op) {
  const auto& strides = op.list("strides");
  const auto& padding = op.list("padding");  // top, left, bottom, right
  if (padding.at(0) != padding.at(2) || padding.at(1) != padding.at(3))
    throw NotSupported(
        fmt::format("{}: padding [{}] differs between sides, which cuDNN's "
                    "convolution cannot take",
                    op.name, fmt::join(padding, ",")));
  auto window = make_owned<cudnnDestroyConvolutionDescriptor>(cudnnCreateConvolutionDescriptor,
                                                              "a convolution");
  // Sums are f32 whatever the operands' type.
  require_success(cudnnSetConvolution2dDescriptor(
                      window.get(), library_int(padding.at(0), op), library_int(padding.at(1), op),
                      library_int(strides.at(0), op), library_int(strides.at(1), op), 1, 1,
                      CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
                  "the window of a convolution");
  return window;
}

cudnnMathType_t library_math(Instructions instructions) {
  switch (instructions) {
    case Instructions::standard:
      return CUDNN_DEFAULT_MATH;
    case Instructions::tensor:
      return CUDNN_TENSOR_OP_MATH;
    case Instructions::tensor_converting:
      return CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
    case Instructions::fma:
      break;
  }
  return CUDNN_FMA_MATH;
}

Instructions instructions_of(cudnnMathType_t math) {
  if (math == CUDNN_DEFAULT_MATH) return Instructions::standard;
  if (math == CUDNN_TENSOR_OP_MATH) return Instructions::tensor;
  // An unknown math type is treated as the one that is never chosen.
  return math == CUDNN_FMA_MATH ? Instructions::fma : Instructions::tensor_converting;
}

std::string name_of(Arithmetic arithmetic, DType type) {
  return arithmetic == Arithmetic::tf32 ? "TF32" : std::string(to_string(type));
}

}  // namespace headroom::cuda
