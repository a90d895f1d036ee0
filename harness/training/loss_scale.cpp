#include "harness/training/loss_scale.h"

#include <fmt/format.h>

#include <algorithm>

namespace headroom {
namespace {

double number_of(const Trainer& trainer, const Value& value) {
  return trainer.read_floats(value).front();
}

}  // namespace

std::map<std::string, double> loss_scale_figures(const Trainer& trainer, const TrainingPlan& plan) {
  std::map<std::string, double> figures;
  for (const Value* value : plan.persistent_values()) {
    if (value->name.ends_with(".loss_scale")) {
      const auto [found, first] = figures.try_emplace("loss_scale", number_of(trainer, *value));
      if (!first) found->second = std::min(found->second, number_of(trainer, *value));
    }
    if (value->name.ends_with(".loss_scale.skipped"))
      figures["skipped_steps"] += number_of(trainer, *value);
  }
  return figures;
}

Reason why_nothing_trained(const std::map<std::string, double>& figures, int updates) {
  const auto skipped = figures.find("skipped_steps");
  if (skipped == figures.end() || skipped->second < updates) return std::nullopt;
  return fmt::format(
      "gradients overflowed in each of {} updates, so that nothing was trained: "
      "start from a smaller loss scale, or take more steps",
      updates);
}

}  // namespace headroom
