// Ops moved to the front of a Program as far as what they read and change allows.
#pragma once

#include <functional>

#include "harness/program/program.h"

namespace headroom {

// Each op that `moves` selects comes right after the last one before it that makes or changes what
// it reads, or touches what it changes. All others keep their order.
Program advance(Program program, const std::function<bool(const Op&)>& moves);

}  // namespace headroom
