// What loss scaling did in a run: figures of a sample, by name.
#pragma once

#include <map>
#include <string>

#include "harness/training/trainer.h"

namespace headroom {

// skipped_steps: updates left out because a gradient was infinite or no number; loss_scale: the
// scale after the last step. Of several Programs the sum and the smallest; empty where no loss was
// scaled.
std::map<std::string, double> loss_scale_figures(const Trainer& trainer, const TrainingPlan& plan);

// Why a run of so many steps that gave these figures trained nothing ("" = it trained).
std::string why_nothing_trained(const std::map<std::string, double>& figures, int updates);

}  // namespace headroom
