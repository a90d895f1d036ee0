// From a Program to kernels: which kinds of op the GPU runs so far, the workspaces they need, and
// the Program made executable.
#pragma once

#include <memory>

#include "harness/device/device.h"

namespace headroom::cuda {

// See CudaModule::add_workspaces.
Program add_workspaces(Program dense);

// Throws InputError when the Program was not lowered under the rules of this GPU and its libraries.
std::unique_ptr<CompiledProgram> compile(const Program& lowered);

}  // namespace headroom::cuda
