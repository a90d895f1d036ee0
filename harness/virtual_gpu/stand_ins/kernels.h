// Determines which memory a kernel would have written. Kernels do nothing, so the contents of their
// results become unknown. A parameter is a result if its type is a pointer to non-constant data, or
// if the code of a generated kernel writes there. Only the kernels in shape_kernels.h, by which
// TensorFlow computes shapes, are carried out.
#pragma once

#include <vector>

namespace headroom::virtual_gpu {

// The time between any two events. Nothing takes time here. The answer is not 0, because programs
// divide by it, and not small, because those that measure kernels repeat them until it adds up.
constexpr float kMillisecondsBetweenEvents = 100;

// Notes a kernel that a library registers: its address and its mangled name, which must stay valid.
void note_kernel(const void* function, const char* mangled_name);
// Notes a function of generated code: its plain name, and the positions of its results if they are
// known.
void note_function(const void* function, const char* name, std::vector<unsigned> results);
// Handles a launch: computes its results or makes them unknown. `arguments` holds addresses.
void settle_results(const void* function, void* const* arguments);

}  // namespace headroom::virtual_gpu
