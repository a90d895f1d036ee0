// Masks over weights: which weights are kept, and how the others are treated.
#include "harness/program/ops/rules.h"

namespace headroom::prune_op {
namespace {

using namespace rules;

std::vector<Value> infer_magnitude_mask(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 3, "takes weight, mask and steps, not {} operands", inputs.size());
  const std::size_t rank = inputs[0].shape.size();
  require_operands(inputs, {{"weight", rank}, {"mask", rank}, {"steps", 1}});
  require_shape(inputs[1], "mask", inputs[0].shape);
  require_shape(inputs[2], "steps", {1});
  require_mutates(op, {1});
  for (const char* share : {"initial", "final"})
    require(op.number(share) >= 0 && op.number(share) < 1, "{} must be a share below 1, not {}",
            share, op.number(share));
  require(op.integer("every") >= 1 && op.integer("end") >= op.integer("begin"),
          "needs begin <= end and every >= 1");
  return {made(inputs[0].shape, Role::workspace)};
}

std::vector<Value> infer_two_of_four(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 3, "takes weight, mask and steps, not {} operands", inputs.size());
  const Shape& shape = inputs[0].shape;
  require_operands(inputs, {{"weight", shape.size()}, {"mask", shape.size()}, {"steps", 1}});
  require(shape.size() >= 2 && shape[1] % 4 == 0,
          "groups of four run along the second dimension, but '{}' is {}", inputs[0].name,
          to_string(shape));
  require_shape(inputs[1], "mask", shape);
  require_shape(inputs[2], "steps", {1});
  require_mutates(op, {1});
  op.integer("begin");
  return {};
}

std::vector<Value> infer_apply_mask(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 2, "takes weight and mask, not {} operands", inputs.size());
  const std::size_t rank = inputs[0].shape.size();
  require_operands(inputs, {{"weight", rank}, {"mask", rank}});
  require_shape(inputs[1], "mask", inputs[0].shape);
  require_mutates(op, {0});
  return {};
}

std::vector<Value> infer_masked(const Op&, std::span<const Value> inputs) {
  require(inputs.size() == 2, "takes x and mask, not {} operands", inputs.size());
  const std::size_t rank = inputs[0].shape.size();
  require_operands(inputs, {{"x", rank}, {"mask", rank}});
  require_shape(inputs[1], "mask", inputs[0].shape);
  const bool gradient = inputs[0].role == Role::gradient;
  return {made(inputs[0].shape, gradient ? Role::gradient : Role::activation)};
}

const bool magnitude_mask = Registry<OpDefinition>::instance().add(
    {.name = "magnitude_mask",
     .summary = "weight, mask, steps[1] -> scratch like weight: in the steps begin, begin + every, "
                "..., end the mask becomes 0 for the share of smallest magnitudes and for zeros, "
                "else 1; the share goes from initial to final along a cubic",
     .infer = infer_magnitude_mask});

const bool two_of_four_mask = Registry<OpDefinition>::instance().add(
    {.name = "two_of_four_mask",
     .summary = "weight, mask, steps[1]: in the step begin the mask becomes 1 for the two largest "
                "magnitudes of each four neighbours along the second dimension (of equal ones the "
                "first), else 0",
     .infer = infer_two_of_four});

const bool apply_mask =
    Registry<OpDefinition>::instance().add({.name = "apply_mask",
                                            .summary = "weight, mask: weight = weight mask",
                                            .infer = infer_apply_mask});

const bool masked = Registry<OpDefinition>::instance().add(
    {.name = "masked",
     .summary = "x, mask -> y = x mask",
     .infer = infer_masked,
     .differentiate = [](GradientContext& context) -> std::vector<ValueId> {
       const ValueId gradient = context.builder.emit_one(
           "masked", context.op.name + ".backward", {context.d_outputs[0], context.op.inputs[1]});
       set_role(context.builder, gradient, Role::gradient);
       return {gradient, kNoValue};
     }});

}  // namespace
}  // namespace headroom::prune_op
