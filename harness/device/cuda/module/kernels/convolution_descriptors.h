// cuDNN descriptors of a convolution's operands, window and arithmetic.
#pragma once

#include "harness/device/cuda/module/check.h"
#include "harness/device/cuda/module/kernels/choose_algorithm.h"
#include "harness/program/program.h"

namespace headroom::cuda {

using TensorDescriptor = Owned<cudnnTensorStruct, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Owned<cudnnFilterStruct, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Owned<cudnnConvolutionStruct, cudnnDestroyConvolutionDescriptor>;

// Describes a row-major tensor of the value's shape with elements of `type`.
TensorDescriptor describe_tensor(const Value& value, DType type, const Op& op);
FilterDescriptor describe_weights(const Value& value, DType type, const Op& op);
// Throws NotSupported when the padding differs between opposite sides.
ConvolutionDescriptor describe_window(const Op& op);

cudnnMathType_t library_math(Instructions instructions);
Instructions instructions_of(cudnnMathType_t math);

// "f32", "TF32", "bf16", "f16"
std::string name_of(Arithmetic arithmetic, DType type);

}  // namespace headroom::cuda
