// Who waits for results that are made beside the stream of the kernels. Plain numbers, so that the
// order can be tested without a GPU.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/program/program.h"

namespace headroom::cuda {

// Of each op, the earlier ops of kind copy_in whose result it is the first to use. What comes after
// it on its stream need not wait. Throws Error where nobody uses a result: its memory would be
// given back while it is written.
std::vector<std::vector<std::size_t>> awaited_copies(const Program& program);

}  // namespace headroom::cuda
