// Moves ops towards the front of a Program as far as their data dependencies allow.
#pragma once

#include <functional>

#include "harness/program/program.h"

namespace headroom {

// Each op that `moves` selects is placed right after the last op that it depends on: one that makes
// or changes its operands, or uses a value that it changes. All other ops keep their order.
Program advance(Program program, const std::function<bool(const Op&)>& moves);

}  // namespace headroom
