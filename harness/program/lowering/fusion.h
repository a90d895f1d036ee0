// Neighbours that one kernel computes in fewer passes over memory. For the rules `onednn`.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "harness/program/program.h"

namespace headroom {

// `op` in the place of several: it stands where the first of them stood, and `others`, by their
// places in Program::ops, are left out. What they handed to each other nobody makes any more.
struct Fusion {
  Op op;
  std::vector<std::size_t> others;
};

// By the place of the first op of each: batch normalisations with the relu behind them, also where
// the sum of a residual block stands between, and the backward passes of both; the gradient of a
// table of rows with the sum that takes it up; a loss with its gradient. What a fusion leaves
// unmade has no other reader. Nothing is asked of layouts.
std::map<std::size_t, Fusion> fusions(const Program& program);

}  // namespace headroom
