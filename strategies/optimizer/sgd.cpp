// Stochastic gradient descent with momentum: one state of the weight's size per weight, updated
// in place. The plain choice of the ResNet papers (He et al. 2015, section 3.4).
#include "harness/base/registry.h"
#include "harness/program/pass.h"

namespace headroom {
namespace {

Program apply_sgd(Program program, const Spec& spec) {
  const Attributes attributes = {{"learning_rate", spec.number("learning_rate", 0.01)},
                                 {"momentum", spec.number("momentum", 0.9)},
                                 {"weight_decay", spec.number("weight_decay", 1e-4)}};
  const auto gradients = program.gradients;
  ProgramBuilder builder(program, Phase::update);
  for (const auto& [weight, gradient] : gradients) {
    const Value trained = program.value(weight);
    const ValueId velocity = builder.persistent(trained.name + ".velocity", trained.shape,
                                                Role::optimizer_state, {Fill::constant, 0.0});
    builder.emit("sgd_momentum", trained.name + ".update", {weight, gradient, velocity}, attributes,
                 {weight, velocity});
  }
  return program;
}

const bool registered = Registry<OptimizerStrategy>::instance().add(
    {.name = "sgd",
     .summary = "SGD with momentum; one fp32 state per weight, updated in place",
     .parameters = {"learning_rate", "momentum", "weight_decay"},
     .apply = apply_sgd});

}  // namespace
}  // namespace headroom
