// Segments of equal numbers of modules, and the common part of their strategies. For the files of
// this folder.
#pragma once

#include "harness/base/error.h"
#include "strategies/checkpointing/regions.h"

namespace headroom::checkpointing {

// Recomputes each segment of `length` modules except the last. The parameters of `spec`:
//   keep=device  values between segments stay where they were made (default)
//   keep=host    they are kept in host memory and copied back for their segment (DeepSpeed's
//                cpu_checkpointing)
//   prefetch=1   they are copied back this many ops before their use
Program recompute_segments(Program differentiated, std::size_t length, const Spec& spec);
Reason why_segments_not_engaged(const Spec& spec, const Program& before, const Program& after);

}  // namespace headroom::checkpointing
