// What a training run asks for, whoever serves it: its Programs carried out on meta, against memory
// without an end.
#pragma once

#include "harness/trace/requests.h"
#include "harness/training/trainer.h"

namespace headroom {

// Of the first `steps` steps, persistent values first. What is asked for is the same on every
// device under the same rules.
RequestList training_requests(const TrainingPlan& plan, int steps);

}  // namespace headroom
