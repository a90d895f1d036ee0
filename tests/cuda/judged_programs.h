// Tests shared by the plain loops and a GPU: small Programs and whole training steps on fresh
// numbers.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda/one_op_programs.h"
#include "tests/unit/support/host_execution.h"

namespace headroom::testing {

// Fills inputs and persistent values afresh: counts and steps are whole numbers, some labels are
// ignored, and every mask keeps at least one token per row.
void fill_for_cuda(const Program& program, Tensors& tensors, std::mt19937_64& random,
                   std::int64_t classes);

// Builds each of `all` a few times in each of its element types, lowers it under `rules`, runs and
// judges it, then repeats the run with outputs written over operands.
void judge(const std::vector<OneOp>& all, const std::string& rules,
           const HostExecution::Compile& compile);

// Runs and judges one training step of a small residual network, BERT, GPT and DCGAN, op by op.
void judge_training_steps(const std::string& rules, const HostExecution::Compile& compile);

}  // namespace headroom::testing
