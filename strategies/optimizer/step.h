// The parameters common to all optimizers: how gradients are clipped and kept, and when weights
// change. For the files of this folder.
//   clip_norm=N           scales all gradients if their common norm exceeds N
//   gradients=none        each gradient lives from its making to its use (default)
//   gradients=zeroed      kept across steps, as by zero_grad(set_to_none=False) in PyTorch
//   step=after_backward   all weights change after the last gradient (default)
//   step=in_backward      each weight changes as soon as its gradient is complete and nothing reads
//                         the weight any more (LOMO, Lv et al. 2023; PyTorch's tutorial on
//                         optimizer steps in backward), so few gradients are alive at a time
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/program/pass.h"
#include "strategies/optimizer/loop.h"

namespace headroom::optimizer {

// Returns `own` plus the parameters above.
std::vector<std::string> parameters(std::vector<std::string> own);

// Emits the ops that change one weight.
using Update = std::function<void(ProgramBuilder&, ValueId weight, ValueId gradient)>;
// Adds the update to `program`, with `together` if loop= requires it. Throws NotSupported for
// options that exclude each other.
Program with_step(Program program, const Spec& spec, const Update& update,
                  const UpdateTogether& together = nullptr);

// A state of a weight, zero before the first step.
ValueId add_state(ProgramBuilder& builder, const std::string& name, const Shape& shape,
                  DType dtype = DType::f32);
// The count of steps, including the current one; its op is emitted at the first call.
ValueId count_steps(ProgramBuilder& builder);
// A number that must be positive. Throws InputError.
double positive(const Spec& spec, const std::string& key, double otherwise);

// For strategies with all of the parameters above.
inline constexpr const char* kBreaks =
    "the update follows a rule of its own; clip_norm= shortens gradients; step=, loop= and "
    "gradients= change no number";

std::vector<Refusal> refusals();
Reason why_not_engaged(const Spec& spec, const Program& before, const Program& after);

}  // namespace headroom::optimizer
