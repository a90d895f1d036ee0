// Convolutions that cuDNN computes as matrix products.
#pragma once

#include <cstdint>
#include <optional>

namespace headroom::virtual_gpu {

// For convolutions with filters of 1 x 1 over images in the order NCHW, with stride 1 and neither
// padding nor groups, cuDNN's heuristics rank an engine first that calls cuBLASLt. Without a GPU
// cuBLASLt does not start, and the same heuristics leave that engine out. A rule therefore computes
// its workspace here. The rule was found on an H200 with cuDNN 9.19, by asking about 72
// convolutions with the GPU and with its description, and in ResNet-50's own requests. Over images
// in the order NHWC the engine's workspaces are as small as those of the engines that are left.
//
// The four functions below follow cuDNN's descriptors from a convolution to its plan.

// Notes an attribute that the program sets.
void note_attribute(void* descriptor, int name, std::int64_t count, const void* values);
// Notes that `heuristics` rank `chosen` first.
void note_first_choice(void* heuristics, void* chosen);
// Forgets a descriptor that is destroyed.
void forget_attributes(void* descriptor);
// Returns the workspace of a plan for that engine, in bytes; nothing for other plans.
std::optional<std::int64_t> workspace_of_product(void* plan);

}  // namespace headroom::virtual_gpu
