// Ops that repeat a forward op for the backward pass. Checkpointing passes make them, and reports
// count them to show their cost.
#pragma once

#include <cstdint>

#include "harness/program/program.h"

namespace headroom {

// Appends a copy of `op` to the Program, with new outputs and in the backward phase. Its operands
// are those of `op`.
Op& repeat(Program& program, const Op& op);
bool is_recomputed(const Op& op);

std::int64_t recomputed_ops(const Program& program);
// Removes repeated ops whose outputs neither another op nor the host reads, and then those that
// only these had needed. Other ops stay, needed or not.
Program without_unread_repetitions(Program program);

}  // namespace headroom
