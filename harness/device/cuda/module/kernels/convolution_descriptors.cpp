#include "harness/device/cuda/module/kernels/convolution_descriptors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/device/cuda/module/kernels/kernel.h"
#include "harness/program/lowering/channels_last.h"

namespace headroom::cuda {
namespace {

cudnnDataType_t cudnn_type(DType type) {
  if (type == DType::bf16) return CUDNN_DATA_BFLOAT16;
  return type == DType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

// "The total size of a tensor … is limited to 2 Giga-elements" (cuDNN API, under
// cudnnSetTensor4dDescriptor).
constexpr std::int64_t kMostElements = (std::int64_t{1} << 31) - 1;

cudnnTensorFormat_t format_of(const Value& images) {
  return is_channels_last(images) ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

cudnnStatus_t set_shape(cudnnTensorDescriptor_t tensor, const Value& value, std::int64_t images,
                        DType type, const Op& op) {
  const Shape& shape = value.shape;
  return cudnnSetTensor4dDescriptor(tensor, format_of(value), cudnn_type(type),
                                    library_int(images, op), library_int(shape.at(1), op),
                                    library_int(shape.at(2), op), library_int(shape.at(3), op));
}

TensorDescriptor make_descriptor() {
  return make_owned<cudnnDestroyTensorDescriptor>(cudnnCreateTensorDescriptor, "a tensor");
}

bool library_takes(const Value& value, std::int64_t images, DType type, const Op& op) {
  if (element_count(value.shape) / value.shape.at(0) > kMostElements / images) return false;
  const cudnnStatus_t status = set_shape(make_descriptor().get(), value, images, type, op);
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return false;
  require_success(status, "the shape of a tensor");
  return true;
}

}  // namespace

std::int64_t images_a_call(const std::vector<const Value*>& tensors, DType type, const Op& op) {
  const std::int64_t batch = tensors.front()->shape.at(0);
  for (std::int64_t calls = 1; calls <= batch; ++calls)
    if (batch % calls == 0 && std::all_of(tensors.begin(), tensors.end(), [&](const Value* tensor) {
          return library_takes(*tensor, batch / calls, type, op);
        }))
      return batch / calls;
  throw NotSupported(
      fmt::format("{}: one image of {} elements is more than a tensor of cuDNN can have; use "
                  "smaller images or fewer channels",
                  op.name, element_count(tensors.front()->shape) / batch));
}

TensorDescriptor describe_tensor(const Value& value, std::int64_t images, DType type,
                                 const Op& op) {
  auto tensor = make_descriptor();
  require_success(set_shape(tensor.get(), value, images, type, op), "the shape of a tensor");
  return tensor;
}

FilterDescriptor describe_weights(const Value& value, const Value& images, DType type,
                                  const Op& op) {
  const Shape& shape = value.shape;
  auto filter = make_owned<cudnnDestroyFilterDescriptor>(cudnnCreateFilterDescriptor, "weights");
  require_success(
      cudnnSetFilter4dDescriptor(filter.get(), cudnn_type(type), format_of(images),
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
