// Fusion of neighbouring ops that one kernel computes with fewer passes over memory.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "harness/program/program.h"

namespace headroom {

// `op` replaces several ops: it takes the place of the first of them, and `others` (indices into
// Program::ops) are removed. The values passed between them are no longer made.
struct Fusion {
  Op op;
  std::vector<std::size_t> others;
};

// The fusions by the index of their first op: a batch normalisation followed by relu, optionally
// with a residual sum between them, and the backward passes of both; the gradient of a table of
// rows with the sum that adds it up; a sum of gradients with that of the relu before it; a loss
// with its gradient. Values that a fusion removes have no other reader. Layouts are not considered.
std::map<std::size_t, Fusion> fusions(const Program& program);

// The Program with those of its fusions for which there is a kernel.
Program fuse(Program program, const std::function<bool(const Op&)>& has_kernel);

}  // namespace headroom
