// Clips gradients by the norm of all gradients together (Pascanu, Mikolov and Bengio 2013).
#include "harness/program/ops/rules.h"

namespace headroom::clip_op {
namespace {

using namespace rules;

std::vector<Value> infer_factor(const Op& op, std::span<const Value> inputs) {
  require(!inputs.empty(), "takes at least one gradient");
  for (const Value& gradient : inputs)
    require(gradient.dtype == DType::f32, "gradients must be f32, but '{}' is {}", gradient.name,
            to_string(gradient.dtype));
  require(op.number("largest_norm") > 0, "largest_norm must be positive");
  return {made({1}, Role::workspace)};
}

std::vector<Value> infer_scale(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 2, "takes gradient and factor, not {} operands", inputs.size());
  require_operands(inputs, {{"gradient", inputs[0].shape.size()}, {"factor", 1}});
  require_shape(inputs[1], "factor", {1});
  require_mutates(op, {0});
  return {};
}

const bool factor = Registry<OpDefinition>::instance().add(
    {.name = "clip_factor",
     .summary = "gradients … -> factor[1] = min(1, largest_norm / norm of all of them together)",
     .infer = infer_factor});

const bool scale = Registry<OpDefinition>::instance().add(
    {.name = "scale_gradient",
     .summary = "gradient, factor[1]: gradient = factor gradient",
     .infer = infer_scale});

}  // namespace
}  // namespace headroom::clip_op
