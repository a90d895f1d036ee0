// The common part of strategies with masks. For the files of this folder.
#pragma once

#include "harness/program/program.h"

namespace headroom::pruning {

// True for weights of two and more dimensions: kernels and embeddings, but not biases or
// normalisations.
bool is_prunable(const Value& value);
// The weight's mask, of its size and type, initially all ones; created at the first call.
ValueId mask_of(ProgramBuilder& builder, ValueId weight);
// The count of steps for schedules, including the current one.
ValueId count_steps(ProgramBuilder& builder);

}  // namespace headroom::pruning
