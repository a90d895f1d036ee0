// Runs a Program as the CUDA device would, without a GPU: its own kernels in plain loops, its
// matrix products with the arguments that cuBLAS would get, and convolutions by the reference in
// place of cuDNN, so that whole networks run.
#pragma once

#include <memory>

#include "harness/device/device.h"

namespace headroom::testing {

// `lowered` must follow dense rules and outlive the result.
std::unique_ptr<CompiledProgram> compile_in_loops(const Program& lowered);

}  // namespace headroom::testing
