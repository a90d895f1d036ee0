// Kernels of TensorFlow that calculate shapes on the device, for tensors of open dimensions: the
// processor does their few numbers, where all of them are known. Otherwise a network that takes
// sequences of any length would be given shapes of zeros.
#pragma once

#include <string_view>

namespace headroom::virtual_gpu {

// Computes one launch, given the address of each argument. Returns false, and writes nothing, if
// some of its operands are not known or too many.
using ShapeKernel = bool(void* const* arguments);

// Finds a shape kernel by its demangled name. Returns nullptr for all other kernels.
ShapeKernel* shape_kernel(std::string_view name);

}  // namespace headroom::virtual_gpu
