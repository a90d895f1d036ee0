#include "strategies/optimizer/adam_update.h"

#include <string>

#include "strategies/optimizer/step.h"

namespace headroom::optimizer {

Attributes adam_attributes(const Spec& spec) {
  return {{"learning_rate", spec.number("learning_rate", 1e-3)},
          {"beta1", spec.number("beta1", 0.9)},
          {"beta2", spec.number("beta2", 0.999)},
          {"epsilon", spec.number("epsilon", 1e-8)},
          {"weight_decay", spec.number("weight_decay", 0)}};
}

AdamStates add_adam_states(ProgramBuilder& builder, ValueId weight) {
  const Value trained = builder.program().value(weight);
  const ValueId mean = add_state(builder, trained.name + ".mean", trained.shape);
  return {mean, add_state(builder, trained.name + ".square", trained.shape)};
}

void emit_adam(ProgramBuilder& builder, ValueId weight, ValueId gradient,
               const Attributes& attributes) {
  const ValueId steps = count_steps(builder);
  const auto [mean, square] = add_adam_states(builder, weight);
  const std::string name = builder.program().value(weight).name;
  builder.emit("adam", name + ".update", {weight, gradient, mean, square, steps}, attributes,
               {weight, mean, square});
}

}  // namespace headroom::optimizer
