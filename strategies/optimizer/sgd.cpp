// Stochastic gradient descent with momentum: one state of the weight's size per weight, updated in
// place. The optimizer of the ResNet papers (He et al. 2015, section 3.4). With loop=foreach the
// weight decay is added into new gradients for all weights first, as in PyTorch
// (torch/optim/sgd.py, _multi_tensor_sgd).
#include <string>
#include <variant>
#include <vector>

#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/optimizer/step.h"

namespace headroom {
namespace {

ValueId add_velocity(ProgramBuilder& builder, ValueId weight) {
  const Value trained = builder.program().value(weight);
  return optimizer::add_state(builder, trained.name + ".velocity", trained.shape);
}

void emit_sgd_together(ProgramBuilder& builder, const optimizer::Trained& trained,
                       optimizer::Loop loop, Attributes attributes) {
  std::vector<ValueId> gradients;
  optimizer::OperandLists decay, update;
  for (const auto& [weight, gradient] : trained) {
    decay.add({weight, gradient}, {});
    gradients.push_back(gradient);
  }
  // Without weight decay there are no values between gradients and weights.
  const bool decays = std::get<double>(attributes["weight_decay"]) != 0;
  if (loop == optimizer::Loop::foreach && decays) {
    gradients = decay.emit(builder, "foreach_weight_decay", attributes);
    attributes["weight_decay"] = 0.0;
  }
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const ValueId weight = trained[i].first;
    update.add({weight, gradients[i], add_velocity(builder, weight)}, {0, 2});
  }
  update.emit(builder, "fused_sgd_momentum", attributes);
  if (loop == optimizer::Loop::foreach) optimizer::hold_gradients(builder, trained);
}

Program apply_sgd(Program program, const Spec& spec) {
  const Attributes attributes = {{"learning_rate", spec.number("learning_rate", 0.01)},
                                 {"momentum", spec.number("momentum", 0.9)},
                                 {"weight_decay", spec.number("weight_decay", 1e-4)}};
  const auto update = [&](ProgramBuilder& builder, ValueId weight, ValueId gradient) {
    const ValueId velocity = add_velocity(builder, weight);
    const std::string name = builder.program().value(weight).name;
    builder.emit("sgd_momentum", name + ".update", {weight, gradient, velocity}, attributes,
                 {weight, velocity});
  };
  return optimizer::with_step(
      std::move(program), spec, update,
      [&](ProgramBuilder& builder, const optimizer::Trained& trained, optimizer::Loop loop) {
        emit_sgd_together(builder, trained, loop, attributes);
      });
}

const bool sgd_is_registered = Registry<OptimizerStrategy>::instance().add(
    {.name = "sgd",
     .summary = "SGD with momentum: one fp32 state per weight, updated in place. loop=foreach or "
                "fused saves kernel launches and holds all gradients at once; foreach with weight "
                "decay also needs temporaries of the size of all weights",
     .parameters = optimizer::parameters({"learning_rate", "loop", "momentum", "weight_decay"}),
     .examples = {"sgd(step=in_backward)", "sgd(clip_norm=1)", "sgd(gradients=zeroed)",
                  "sgd(loop=foreach)", "sgd(loop=fused)"},
     .apply = apply_sgd,
     .refuses = optimizer::refusals(),
     .why_not_engaged = optimizer::why_not_engaged,
     .breaks = optimizer::kBreaks});

}  // namespace
}  // namespace headroom
