// Layer normalisation (Ba, Kiros and Hinton 2016): each row by its own mean and variance.
#include "harness/program/ops/rules.h"

namespace headroom::layer_norm_op {
namespace {

using namespace rules;

std::vector<Value> infer_forward(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 2, real}, {"scale", 1}, {"shift", 1}});
  for (const std::size_t i : {1, 2})
    require_shape(inputs[i], "a per-column operand", {inputs[0].shape[1]});
  require(op.number("epsilon") > 0, "epsilon must be positive");
  const Shape rows = {inputs[0].shape[0]};
  return {made(inputs[0].shape, Role::activation, real), made(rows), made(rows)};
}

std::vector<Value> infer_backward(const Op&, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(
      inputs,
      {{"x", 2, real}, {"dy", 2, real}, {"mean", 1}, {"inverse_deviation", 1}, {"scale", 1}});
  const Shape& x = inputs[0].shape;
  require_shape(inputs[1], "dy", x);
  for (const std::size_t i : {2, 3}) require_shape(inputs[i], "a per-row operand", {x[0]});
  require_shape(inputs[4], "scale", {x[1]});
  return {made(x, Role::activation_gradient, real), made({x[1]}, Role::gradient),
          made({x[1]}, Role::gradient)};
}

std::vector<ValueId> differentiate_layer_norm(GradientContext& context) {
  require_gradient_of_first_output_only(context);
  const Op& op = context.op;
  return context.builder.emit(
      "layer_norm_backward", op.name + ".backward",
      {op.inputs[0], context.d_outputs[0], op.outputs[1], op.outputs[2], op.inputs[1]});
}

const bool forward = Registry<OpDefinition>::instance().add(
    {.name = "layer_norm",
     .summary = "x[N,H], scale[H], shift[H] -> y, mean[N], inverse_deviation[N] = "
                "1 / sqrt(variance + epsilon)",
     .infer = infer_forward,
     .differentiate = differentiate_layer_norm});

const bool backward = Registry<OpDefinition>::instance().add(
    {.name = "layer_norm_backward",
     .summary = "x, dy, mean[N], inverse_deviation[N], scale[H] -> dx, dscale[H], dshift[H]",
     .infer = infer_backward});

}  // namespace
}  // namespace headroom::layer_norm_op
