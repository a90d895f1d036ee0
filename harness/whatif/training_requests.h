// The requests of training, independent of the allocator: its Programs are executed on meta
// with unlimited memory.
#pragma once

#include "harness/trace/requests.h"
#include "harness/training/trainer.h"

namespace headroom {

// Returns the requests of the first `steps` steps, persistent values first. Under the same rules
// the requests are the same on every device.
RequestList training_requests(const TrainingPlan& plan, int steps);

}  // namespace headroom
