// Finds the ops that must wait for copies made on a stream of their own. Works on plain numbers, so
// that the order can be tested without a GPU.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/program/program.h"

namespace headroom::cuda {

// For each op, lists the earlier copy_in ops whose result it is the first to use; later ops on the
// same stream need not wait again. Throws Error when a result is never used, because its memory
// would be released while the copy still writes to it.
std::vector<std::vector<std::size_t>> awaited_copies(const Program& program);

}  // namespace headroom::cuda
