// Which memory a kernel would have written to. Kernels do nothing, so what their results were is
// not known any more. The type of a parameter tells it: a pointer to something that is not
// constant. The exception are kernels by which TensorFlow calculates shapes (shape_kernels.h).
#pragma once

namespace headroom::virtual_gpu {

// Notes a kernel that a library registers: the address by which it is launched, and its mangled
// name, which must stay where it is.
void note_kernel(const void* function, const char* mangled_name);
// Handles a launch: its results are computed or forgotten. `arguments` has the address of each.
void settle_results(const void* function, void* const* arguments);

}  // namespace headroom::virtual_gpu
