// Effects of loss scaling on training, as named figures of a sample.
#pragma once

#include <map>
#include <string>

#include "harness/base/error.h"
#include "harness/training/trainer.h"

namespace headroom {

// skipped_steps: updates skipped because a gradient was infinite or NaN; loss_scale: the scale
// after the last step. With several Programs these are the sum and the minimum. Empty if no loss
// was scaled.
std::map<std::string, double> loss_scale_figures(const Trainer& trainer, const TrainingPlan& plan);

// Why training with these figures changed nothing: all of its `updates` were skipped.
Reason why_nothing_trained(const std::map<std::string, double>& figures, int updates);

}  // namespace headroom
