// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019, "AdamW"): two
// states of the weight's size per weight, updated in place, and one count of steps.
#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/optimizer/adam_update.h"
#include "strategies/optimizer/step.h"

namespace headroom {
namespace {

Program apply_adam(Program program, const Spec& spec) {
  const Attributes attributes = optimizer::adam_attributes(spec);
  return optimizer::with_step(std::move(program), spec,
                              [&](ProgramBuilder& builder, ValueId weight, ValueId gradient) {
                                optimizer::emit_adam(builder, weight, gradient, attributes);
                              });
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
