// The ledger of a run in which steps may pass without an event, as those of captured Programs do: a
// trace knows of no step but by its events.
#pragma once

#include "harness/trace/ledger.h"

namespace headroom {

// As make_ledger, of so many steps. One without an event holds what the one before it left.
Ledger make_ledger_of(const Trace& trace, int warmup_steps, int steps);

}  // namespace headroom
