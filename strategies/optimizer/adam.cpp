// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019, "AdamW"): two
// states of the weight's size per weight, updated in place, and one count of steps. With
// loop=foreach the roots of all squares are made before any weight changes, as PyTorch's
// exp_avg_sq_sqrt (torch/optim/adam.py, _multi_tensor_adam).
#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/optimizer/adam_update.h"
#include "strategies/optimizer/step.h"

namespace headroom {
namespace {

void emit_adam_together(ProgramBuilder& builder, const optimizer::Trained& trained,
                        optimizer::Loop loop, const Attributes& attributes) {
  const ValueId steps = optimizer::count_steps(builder);
  std::vector<optimizer::AdamStates> states;
  optimizer::OperandLists fused, moments, squares, weights;
  for (const auto& [weight, gradient] : trained) {
    const auto [mean, square] = states.emplace_back(optimizer::add_adam_states(builder, weight));
    fused.add({weight, gradient, mean, square}, {0, 2, 3});
    moments.add({gradient, mean, square}, {1, 2});
    squares.add({square}, {});
  }
  if (loop == optimizer::Loop::fused) {
    fused.emit(builder, "fused_adam", attributes, steps);
    return;
  }
  moments.emit(builder, "foreach_adam_moments", attributes);
  const std::vector<ValueId> roots = squares.emit(builder, "foreach_adam_roots", attributes, steps);
  for (std::size_t i = 0; i < trained.size(); ++i)
    weights.add({trained[i].first, states[i].mean, roots[i]}, {0});
  weights.emit(builder, "foreach_adam_weights", attributes, steps);
  optimizer::hold_gradients(builder, trained);
}

Program apply_adam(Program program, const Spec& spec) {
  const Attributes attributes = optimizer::adam_attributes(spec);
  return optimizer::with_step(
      std::move(program), spec,
      [&](ProgramBuilder& builder, ValueId weight, ValueId gradient) {
        optimizer::emit_adam(builder, weight, gradient, attributes);
      },
      [&](ProgramBuilder& builder, const optimizer::Trained& trained, optimizer::Loop loop) {
        emit_adam_together(builder, trained, loop, attributes);
      });
}

const bool adam_is_registered = Registry<OptimizerStrategy>::instance().add(
    {.name = "adam",
     .summary = "Adam with decoupled weight decay: two fp32 states per weight, updated in place. "
                "loop=foreach or fused saves kernel launches and holds all gradients at once; "
                "foreach also needs temporaries of the size of all weights",
     .parameters = optimizer::parameters(
         {"beta1", "beta2", "epsilon", "learning_rate", "loop", "weight_decay"}),
     .examples = {"adam", "adam(step=in_backward)", "adam(loop=foreach)", "adam(loop=fused)"},
     .apply = apply_adam,
     .refuses = optimizer::refusals(),
     .why_not_engaged = optimizer::why_not_engaged,
     .breaks = optimizer::kBreaks});

}  // namespace
}  // namespace headroom
