// A differentiated Program as a chain of modules with what each choice holds and costs. For the
// files of this folder.
#pragma once

#include <vector>

#include "strategies/checkpointing/chain.h"
#include "strategies/checkpointing/regions.h"

namespace headroom::checkpointing {

// Of all segments of `units`; what recompute() would make of them, without making it.
Chain chain_of(const Program& differentiated, const std::vector<Unit>& units);

}  // namespace headroom::checkpointing
