// Measures the zeros among trained weights, which show whether pruning took place.
#pragma once

#include "harness/training/trainer.h"

namespace headroom {

// Returns the share of zeros among weights of two and more dimensions as the forward pass uses
// them: zero by value, or by the mask of a masked copy.
double zero_weight_share(const Trainer& trainer, const TrainingPlan& plan);

// Whether some op of the plan chooses which weights to zero.
bool has_masks(const TrainingPlan& plan);

}  // namespace headroom
