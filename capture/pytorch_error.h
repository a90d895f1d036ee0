// PyTorch's own error for a request that no memory is left for.
#pragma once

#include <string>

namespace headroom {

// Whether PyTorch is loaded in this process and exports what throwing needs.
bool can_throw_pytorch_out_of_memory();

// Throws PyTorch's c10::OutOfMemoryError, which Python sees as torch.OutOfMemoryError. The error
// must pass no frame that has something to destroy: this library has a C++ runtime of its own.
[[noreturn]] void throw_pytorch_out_of_memory(const std::string& message);

}  // namespace headroom
