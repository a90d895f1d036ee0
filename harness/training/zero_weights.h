// How much of a trained network is zero: what says of a run whether pruning took place.
#pragma once

#include "harness/training/trainer.h"

namespace headroom {

// Share of the weights of two and more dimensions that are zero as the forward pass uses them: by
// value, or by the mask of a masked copy.
double zero_weight_share(const Trainer& trainer, const TrainingPlan& plan);

// Whether some op of the plan chooses which weights to zero.
bool has_masks(const TrainingPlan& plan);

}  // namespace headroom
