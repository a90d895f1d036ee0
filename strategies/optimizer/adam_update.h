// The common part of adam and its variants: the parameters of the rule, and its update with fp32
// states.
#pragma once

#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom::optimizer {

// The rule's parameters by name, with the defaults of Kingma and Ba 2015.
Attributes adam_attributes(const Spec& spec);
// Both zero before the first step.
struct AdamStates {
  ValueId mean, square;
};
AdamStates add_adam_states(ProgramBuilder& builder, ValueId weight);
void emit_adam(ProgramBuilder& builder, ValueId weight, ValueId gradient,
               const Attributes& attributes);

}  // namespace headroom::optimizer
