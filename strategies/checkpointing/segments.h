// Segments of equal numbers of modules, and the common part of their strategies. For the files of
// this folder.
#pragma once

#include "harness/base/error.h"
#include "strategies/checkpointing/regions.h"

namespace headroom::checkpointing {

// Recomputes each segment of `length` modules but the last. The parameters of `spec`:
//   keep=device  what passes between segments stays where it was made (default)
//   keep=host    it waits in memory of the host and is copied back for its segment (DeepSpeed's
//                cpu_checkpointing)
//   prefetch=1   so many ops ahead
Program recompute_segments(Program differentiated, std::size_t length, const Spec& spec);
Reason why_segments_not_engaged(const Spec& spec, const Program& before, const Program& after);

}  // namespace headroom::checkpointing
