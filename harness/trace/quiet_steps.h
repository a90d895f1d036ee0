// Ledgers for runs in which a step may have no event, as with captured Programs. A trace records
// steps only through their events, so the number of steps must be given.
#pragma once

#include "harness/trace/ledger.h"

namespace headroom {

// Like make_ledger, for a given number of steps. A step without events holds what it started with.
Ledger make_ledger_of(const Trace& trace, int warmup_steps, int steps);

}  // namespace headroom
