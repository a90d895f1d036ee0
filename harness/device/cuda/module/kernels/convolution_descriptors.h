// cuDNN descriptors of a convolution's operands, window and arithmetic.
#pragma once

#include <vector>

#include "harness/device/cuda/module/check.h"
#include "harness/device/cuda/module/kernels/choose_algorithm.h"
#include "harness/program/program.h"

namespace headroom::cuda {

using TensorDescriptor = Owned<cudnnTensorStruct, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Owned<cudnnFilterStruct, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Owned<cudnnConvolutionStruct, cudnnDestroyConvolutionDescriptor>;

// Returns the number of images per call: a divisor of the tensors' batch, because cuDNN takes
// tensors of fewer than 2^31 elements. Throws NotSupported when one image is too large.
std::int64_t images_a_call(const std::vector<const Value*>& tensors, DType type, const Op& op);

// Describes a tensor of the value's shape and layout, but with `images` images and elements of
// `type`.
TensorDescriptor describe_tensor(const Value& value, std::int64_t images, DType type, const Op& op);
// Describes weights in the order that cuDNN requires beside these images: their channels are
// innermost too.
FilterDescriptor describe_weights(const Value& value, const Value& images, DType type,
                                  const Op& op);
// Throws NotSupported when the padding differs between opposite sides.
ConvolutionDescriptor describe_window(const Op& op);

cudnnMathType_t library_math(Instructions instructions);
Instructions instructions_of(cudnnMathType_t math);

// "f32", "TF32", "bf16", "f16"
std::string name_of(Arithmetic arithmetic, DType type);

}  // namespace headroom::cuda
