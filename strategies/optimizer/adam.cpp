// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019, "AdamW"): two
// states of the weight's size per weight, updated in place, and one count of steps.
#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/optimizer/step.h"

namespace headroom {
namespace {

Program apply_adam(Program program, const Spec& spec) {
  const Attributes attributes = {{"learning_rate", spec.number("learning_rate", 1e-3)},
                                 {"beta1", spec.number("beta1", 0.9)},
                                 {"beta2", spec.number("beta2", 0.999)},
                                 {"epsilon", spec.number("epsilon", 1e-8)},
                                 {"weight_decay", spec.number("weight_decay", 0)}};
  const std::string steps_name = program.name + ".steps";
  ValueId steps = kNoValue;
  const auto update = [&](ProgramBuilder& builder, ValueId weight, ValueId gradient) {
    const auto state = [&](const std::string& name, const Shape& shape) {
      return builder.persistent(name, shape, Role::optimizer_state, {Fill::constant, 0.0});
    };
    if (steps == kNoValue) {
      steps = state(steps_name, {1});
      builder.emit("count_step", steps_name + ".count", {steps}, {}, {steps});
    }
    const Value trained = builder.program().value(weight);
    const ValueId mean = state(trained.name + ".mean", trained.shape);
    const ValueId square = state(trained.name + ".square", trained.shape);
    builder.emit("adam", trained.name + ".update", {weight, gradient, mean, square, steps},
                 attributes, {weight, mean, square});
  };
  return optimizer::with_step(std::move(program), spec, update);
}

const bool registered = Registry<OptimizerStrategy>::instance().add(
    {.name = "adam",
     .summary = "Adam with decoupled weight decay; two fp32 states per weight, updated in place",
     .parameters =
         optimizer::parameters({"beta1", "beta2", "epsilon", "learning_rate", "weight_decay"}),
     .examples = {"adam", "adam(step=in_backward)"},
     .apply = apply_adam,
     .refuses = optimizer::refusals(),
     .why_not_engaged = optimizer::why_not_engaged,
     .breaks = "the update follows a rule of its own; clip_norm= shortens gradients, step= and "
               "gradients= change no number"});

}  // namespace
}  // namespace headroom
