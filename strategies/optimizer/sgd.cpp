// Stochastic gradient descent with momentum: one state of the weight's size per weight, updated
// in place. The plain choice of the ResNet papers (He et al. 2015, section 3.4).
#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/optimizer/step.h"

namespace headroom {
namespace {

Program apply_sgd(Program program, const Spec& spec) {
  const Attributes attributes = {{"learning_rate", spec.number("learning_rate", 0.01)},
                                 {"momentum", spec.number("momentum", 0.9)},
                                 {"weight_decay", spec.number("weight_decay", 1e-4)}};
  const auto update = [&](ProgramBuilder& builder, ValueId weight, ValueId gradient) {
    const Value trained = builder.program().value(weight);
    const ValueId velocity = builder.persistent(trained.name + ".velocity", trained.shape,
                                                Role::optimizer_state, {Fill::constant, 0.0});
    builder.emit("sgd_momentum", trained.name + ".update", {weight, gradient, velocity}, attributes,
                 {weight, velocity});
  };
  return optimizer::with_step(std::move(program), spec, update);
}

const bool registered = Registry<OptimizerStrategy>::instance().add(
    {.name = "sgd",
     .summary = "SGD with momentum; one fp32 state per weight, updated in place",
     .parameters = optimizer::parameters({"learning_rate", "momentum", "weight_decay"}),
     .examples = {"sgd(step=in_backward)", "sgd(clip_norm=1)", "sgd(gradients=zeroed)"},
     .apply = apply_sgd,
     .refuses = optimizer::refusals(),
     .why_not_engaged = optimizer::why_not_engaged,
     .breaks = "the update follows a rule of its own; clip_norm= shortens gradients, step= and "
               "gradients= change no number"});

}  // namespace
}  // namespace headroom
