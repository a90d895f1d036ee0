// Loss scaling for training steps with fp16 gradients, whose exponent range is small. For
// strategies of mixed precision in fp16.
//   loss_scale=dynamic   halved where a gradient overflowed, doubled after growth_interval steps in
//                        which none did (default)
//   loss_scale=N         stays N
// Either way a step with an infinite or NaN gradient changes no weight and no state. Defaults are
// those of PyTorch's GradScaler: 65536 at first, 2000 steps.
#pragma once

#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom::loss_scaling {

// Returns `own` plus the parameters above.
std::vector<std::string> parameters(std::vector<std::string> own);
// Multiplies the gradient of each loss by the scale, before it is read. Throws InputError for
// invalid numbers.
Program scale_losses(Program differentiated, const Spec& spec);
// To be applied after the update is added: checks gradients and divides them by the scale before
// the update, skips every change of the update if one overflowed, and adjusts the scale after it.
Program guard_update(Program program, const Spec& spec);
// Why a lowered step is not guarded in this way; absent where it updates nothing.
Reason why_not_guarded(const Program& lowered);

}  // namespace headroom::loss_scaling
