// The gradients of a linear layer's weights and bias by OpenBLAS.
#pragma once

#include <optional>

#include "harness/device/host/kernels/kernel.h"
#include "harness/program/onednn/library_op.h"

namespace headroom::host {

// A kernel that is faster than oneDNN's, where there is one: `described` is linear_backward_weights
// in f32 on plain matrices, which oneDNN would compute by its general product, and this machine has
// an OpenBLAS that uses OpenMP's threads. oneDNN has only its general product on CPUs without
// AVX-512, and that reads a transposed matrix slowly, above all one whose rows are a multiple of
// 4 KiB apart (2.6.3 on an EPYC with AVX2, 2048 × 1024 by 2048 × 256: 36 GFLOP/s a core, OpenBLAS
// 78). The library is loaded when the first such kernel is made, because few programs need it.
std::optional<Kernel> weight_gradient_by_blas(const onednn::LibraryOp& described, const Op& op,
                                              const Program& program);

}  // namespace headroom::host
