// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019, "AdamW"): two
// states of the weight's size per weight, updated in place, and one count of steps.
#include "harness/base/registry.h"
#include "harness/program/pass.h"

namespace headroom {
namespace {

Program apply_adam(Program program, const Spec& spec) {
  const Attributes attributes = {{"learning_rate", spec.number("learning_rate", 1e-3)},
                                 {"beta1", spec.number("beta1", 0.9)},
                                 {"beta2", spec.number("beta2", 0.999)},
                                 {"epsilon", spec.number("epsilon", 1e-8)},
                                 {"weight_decay", spec.number("weight_decay", 0)}};
  const auto gradients = program.gradients;
  ProgramBuilder builder(program, Phase::update);
  const auto state = [&](const std::string& name, const Shape& shape) {
    return builder.persistent(name, shape, Role::optimizer_state, {Fill::constant, 0.0});
  };
  const ValueId steps = state(program.name + ".steps", {1});
  builder.emit("count_step", program.name + ".steps.count", {steps}, {}, {steps});
  for (const auto& [weight, gradient] : gradients) {
    const Value trained = program.value(weight);
    const ValueId mean = state(trained.name + ".mean", trained.shape);
    const ValueId square = state(trained.name + ".square", trained.shape);
    builder.emit("adam", trained.name + ".update", {weight, gradient, mean, square, steps},
                 attributes, {weight, mean, square});
  }
  return program;
}

const bool registered = Registry<OptimizerStrategy>::instance().add(
    {.name = "adam",
     .summary = "Adam with decoupled weight decay; two fp32 states per weight, updated in place",
     .parameters = {"beta1", "beta2", "epsilon", "learning_rate", "weight_decay"},
     .apply = apply_adam});

}  // namespace
}  // namespace headroom
