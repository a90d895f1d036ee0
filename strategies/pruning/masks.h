// What strategies of masks share. For the files of this folder.
#pragma once

#include "harness/program/program.h"

namespace headroom::pruning {

// Weights of two and more dimensions: kernels, embeddings; no biases, no normalisation.
bool is_prunable(const Value& value);
// A mask of the weight's size and type, all ones at first; made where it is not there yet.
ValueId mask_of(ProgramBuilder& builder, ValueId weight);
// The count of steps that schedules go by, this one included.
ValueId count_steps(ProgramBuilder& builder);

}  // namespace headroom::pruning
