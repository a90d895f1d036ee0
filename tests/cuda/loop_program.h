// A Program as the CUDA device computes it, without a GPU: its own kernels in plain loops, its
// matrix products with the numbers that cuBLAS would be handed. The convolutions of cuDNN are not
// there; the reference stands in for them, so that whole networks run.
#pragma once

#include <memory>

#include "harness/device/device.h"

namespace headroom::testing {

// `lowered` under dense rules; kept until the result is gone.
std::unique_ptr<CompiledProgram> compile_in_loops(const Program& lowered);

}  // namespace headroom::testing
