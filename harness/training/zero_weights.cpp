#include "harness/training/zero_weights.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace headroom {

double zero_weight_share(const Trainer& trainer, const TrainingPlan& plan) {
  std::map<std::string, const Value*> values;
  for (const Value* value : plan.persistent_values()) values[value->name] = value;
  std::size_t zeros = 0;
  std::size_t all = 0;
  for (const auto& [name, value] : values) {
    if (value->role != Role::weight || value->shape.size() < 2) continue;
    std::vector<float> used = trainer.read_floats(*value);
    if (const auto mask = values.find(name + ".mask"); mask != values.end()) {
      const std::vector<float> kept = trainer.read_floats(*mask->second);
      for (std::size_t i = 0; i < used.size(); ++i) used[i] *= kept[i];
    }
    zeros += static_cast<std::size_t>(std::count(used.begin(), used.end(), 0.0F));
    all += used.size();
  }
  return all == 0 ? 0 : static_cast<double>(zeros) / static_cast<double>(all);
}

bool has_masks(const TrainingPlan& plan) {
  const auto programs = plan.programs();
  return std::any_of(programs.begin(), programs.end(), [](const Program* program) {
    return std::any_of(program->ops.begin(), program->ops.end(), [](const Op& op) {
      return op.kind == "magnitude_mask" || op.kind == "two_of_four_mask";
    });
  });
}

}  // namespace headroom
