// What one training step does, counted on its Programs: nothing is executed or timed.
#pragma once

#include <cstdint>

#include "harness/training/training_plan.h"

namespace headroom {

struct StepCounts {
  std::int64_t ops = 0;         // that compute
  std::int64_t recomputed = 0;  // of them, forward ops repeated for the backward pass
  double flops = 0;             // total_flops
  // Operands and results of all ops, each once, whole and as the rules lay them out: what passes
  // the memory at least where no cache holds it. Of a table that is looked up, more than is read.
  Bytes touched = 0;
  Bytes offloaded = 0;  // copied to memory of the host, and back
  Bytes host_peak = 0;  // most of that which is kept there at a time
};

// Of a step of the usual shape.
StepCounts count_step(const TrainingPlan& plan);

}  // namespace headroom
