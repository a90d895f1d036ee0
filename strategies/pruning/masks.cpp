#include "strategies/pruning/masks.h"

#include <string>

namespace headroom::pruning {

bool is_prunable(const Value& value) {
  return value.persistent && value.role == Role::weight && value.shape.size() >= 2;
}

ValueId mask_of(ProgramBuilder& builder, ValueId weight) {
  const Value kept = builder.program().value(weight);
  const std::string name = kept.name + ".mask";
  const ValueId known = builder.program().find(name);
  if (known != kNoValue) return known;
  return builder.persistent(name, kept.shape, Role::statistic, {Fill::constant, 1.0});
}

ValueId count_steps(ProgramBuilder& builder) {
  const std::string name = builder.program().name + ".pruning_steps";
  const ValueId steps = builder.persistent(name, {1}, Role::statistic, {Fill::constant, 0.0});
  builder.emit("count_step", name + ".count", {steps}, {}, {steps});
  return steps;
}

}  // namespace headroom::pruning
