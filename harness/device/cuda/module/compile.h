// Turns a Program into kernels: which kinds of op the GPU supports, the workspaces they need, and
// the executable Program.
#pragma once

#include <memory>

#include "harness/device/device.h"

namespace headroom::cuda {

// See CudaModule::lower_for_gpu.
Program lower_for_gpu(Program dense);

// Throws InputError when the Program was not lowered for this GPU and its library versions.
std::unique_ptr<CompiledProgram> compile(const Program& lowered);

}  // namespace headroom::cuda
