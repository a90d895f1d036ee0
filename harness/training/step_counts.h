// Counts what one training step does from its Programs; nothing is executed or timed.
#pragma once

#include <cstdint>

#include "harness/training/training_plan.h"

namespace headroom {

struct StepCounts {
  std::int64_t ops = 0;         // ops that compute
  std::int64_t recomputed = 0;  // of these, forward ops repeated for the backward pass
  double flops = 0;             // total_flops
  // Operands and results of all ops, in the layout of the lowering rules; what an op changes in
  // place counts as read and as written: the least memory traffic without caches. Overestimates
  // lookups, which read only a part of their table.
  Bytes touched = 0;
  Bytes offloaded = 0;  // copied to host memory, and back
  Bytes host_peak = 0;  // peak of the offloaded bytes kept on the host
};

// Counts a step of the usual shape.
StepCounts count_step(const TrainingPlan& plan);

}  // namespace headroom
