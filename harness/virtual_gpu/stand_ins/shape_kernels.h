// Kernels by which TensorFlow computes shapes on the device if it does not know all dimensions. The
// processor carries them out if all of their few numbers are known; otherwise a network that
// accepts sequences of any length would get shapes of zeros.
#pragma once

#include <string_view>

namespace headroom::virtual_gpu {

// Computes one launch, given the address of each argument. Returns false and writes nothing if some
// operands are unknown or there are too many.
using ShapeKernel = bool(void* const* arguments);

// Finds a shape kernel by its demangled name. Returns nullptr for all other kernels.
ShapeKernel* shape_kernel(std::string_view name);

}  // namespace headroom::virtual_gpu
