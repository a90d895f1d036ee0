// Smooth activations. gelu keeps its input for the backward pass; tanh and leaky_relu keep their
// output, which the next op usually keeps anyway.
#include "harness/program/ops/rules.h"

namespace headroom::activation_op {
namespace {

using namespace rules;

std::vector<Value> infer_forward(const Op&, std::span<const Value> inputs) {
  require(inputs.size() == 1, "takes one operand, not {}", inputs.size());
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", inputs[0].shape.size(), real}});
  return {made(inputs[0].shape, Role::activation, real)};
}

std::vector<Value> infer_backward(const Op&, std::span<const Value> inputs) {
  require(inputs.size() == 2, "takes the kept value and dy, not {} operands", inputs.size());
  const DType real = real_type(inputs);
  const std::size_t rank = inputs[0].shape.size();
  require_operands(inputs, {{"kept", rank, real}, {"dy", rank, real}});
  require_shape(inputs[1], "dy", inputs[0].shape);
  return {made(inputs[0].shape, Role::activation_gradient, real)};
}

void require_slope(const Op& op) {
  require(op.number("slope") > 0, "slope must be positive: the output tells the input's sign");
}

std::vector<ValueId> from_input(GradientContext& context) {
  const Op& op = context.op;
  return {context.builder.emit_one(op.kind + "_backward", op.name + ".backward",
                                   {op.inputs[0], context.d_outputs[0]}, op.attributes)};
}

std::vector<ValueId> from_output(GradientContext& context) {
  const Op& op = context.op;
  return {context.builder.emit_one(op.kind + "_backward", op.name + ".backward",
                                   {op.outputs[0], context.d_outputs[0]}, op.attributes)};
}

const bool gelu =
    Registry<OpDefinition>::instance().add({.name = "gelu",
                                            .summary = "x -> y = x / 2 (1 + erf(x / sqrt(2)))",
                                            .infer = infer_forward,
                                            .differentiate = from_input});

const bool gelu_backward = Registry<OpDefinition>::instance().add(
    {.name = "gelu_backward", .summary = "x, dy -> dx", .infer = infer_backward});

const bool tanh = Registry<OpDefinition>::instance().add({.name = "tanh",
                                                          .summary = "x -> y = tanh(x)",
                                                          .infer = infer_forward,
                                                          .differentiate = from_output});

const bool tanh_backward = Registry<OpDefinition>::instance().add(
    {.name = "tanh_backward", .summary = "y, dy -> dx = dy (1 - y^2)", .infer = infer_backward});

const bool leaky_relu =
    Registry<OpDefinition>::instance().add({.name = "leaky_relu",
                                            .summary = "x -> y = x where x > 0, else slope x",
                                            .infer =
                                                [](const Op& op, std::span<const Value> inputs) {
                                                  require_slope(op);
                                                  return infer_forward(op, inputs);
                                                },
                                            .differentiate = from_output});

const bool leaky_relu_backward = Registry<OpDefinition>::instance().add(
    {.name = "leaky_relu_backward",
     .summary = "y, dy -> dx = dy where y > 0, else slope dy",
     .infer = [](const Op& op, std::span<const Value> inputs) {
       require_slope(op);
       return infer_backward(op, inputs);
     }});

}  // namespace
}  // namespace headroom::activation_op
