// Ops that repeat a forward op for the backward pass: made by checkpointing passes, counted by
// whoever reports what they cost.
#pragma once

#include <cstdint>

#include "harness/program/program.h"

namespace headroom {

// `op` once more, with new outputs, in the backward phase; appended to the Program. Operands are
// as in `op`.
Op& repeat(Program& program, const Op& op);
bool is_recomputed(const Op& op);

std::int64_t recomputed_ops(const Program& program);
// Makes nothing that any other op or the host reads: such an op is left out, and with it what only
// it had needed. Other ops stay, needed or not.
Program without_unread_repetitions(Program program);

}  // namespace headroom
