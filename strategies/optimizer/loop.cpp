#include "strategies/optimizer/loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/error.h"

namespace headroom::optimizer {

Loop loop_of(const Spec& spec) {
  const std::string loop = spec.text("loop", "per_tensor");
  if (loop == "per_tensor") return Loop::per_tensor;
  if (loop == "foreach") return Loop::foreach;
  if (loop == "fused") return Loop::fused;
  throw InputError(fmt::format("{}: loop '{}' does not exist; take per_tensor, foreach or fused",
                               spec.to_string(), loop));
}

void OperandLists::add(std::initializer_list<ValueId> operands,
                       std::initializer_list<std::size_t> changed) {
  inputs_.insert(inputs_.end(), operands);
  for (const std::size_t place : changed) mutates_.push_back(operands.begin()[place]);
}

std::vector<ValueId> OperandLists::emit(ProgramBuilder& builder, const std::string& kind,
                                        const Attributes& attributes, ValueId last) const {
  std::vector<ValueId> inputs = inputs_;
  if (last != kNoValue) inputs.push_back(last);
  return builder.emit(kind, builder.program().name + "." + kind, inputs, attributes, mutates_);
}

void hold_gradients(ProgramBuilder& builder, const Trained& trained) {
  std::vector<ValueId> gradients;
  for (const auto& [weight, gradient] : trained)
    if (!builder.program().value(gradient).persistent) gradients.push_back(gradient);
  builder.emit("hold", builder.program().name + ".gradients", gradients);
}

Reason why_not_together(const Spec& spec, const Program& after) {
  if (loop_of(spec) == Loop::per_tensor) return std::nullopt;
  const auto is_weight = [&](ValueId id) { return after.value(id).role == Role::weight; };
  const bool together = std::any_of(after.ops.begin(), after.ops.end(), [&](const Op& op) {
    return std::count_if(op.mutates.begin(), op.mutates.end(), is_weight) > 1;
  });
  if (together) return std::nullopt;
  return fmt::format("optimizer={}: no op changes two weights of '{}'", spec.to_string(),
                     after.name);
}

}  // namespace headroom::optimizer
