// Loss scaling around a training step whose gradients pass through 16 bits with few exponents: for
// strategies of mixed precision in fp16.
//   loss_scale=dynamic   halved where a gradient overflowed, doubled after growth_interval steps in
//                        which none did (default)
//   loss_scale=N         stays N
// Either way a step in which a gradient is infinite or no number changes no weight and no state.
// Defaults are those of PyTorch's GradScaler: 65536 at first, 2000 steps.
#pragma once

#include <string>
#include <vector>

#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom::loss_scaling {

// `own` and the parameters above.
std::vector<std::string> parameters(std::vector<std::string> own);
// The gradient of each loss times the scale, before anything reads it. Throws InputError for
// numbers that mean nothing.
Program scale_losses(Program differentiated, const Spec& spec);
// Once the update stands: gradients checked and divided by the scale in front of it, every change
// it makes left out where they overflowed, the scale adjusted behind it.
Program guard_update(Program program, const Spec& spec);
// Why a lowered step is not guarded so; "" = it is, or it updates nothing.
std::string why_not_guarded(const Program& lowered);

}  // namespace headroom::loss_scaling
