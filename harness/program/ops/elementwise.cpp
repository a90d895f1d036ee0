#include "harness/program/ops/rules.h"

namespace headroom::elementwise_op {
namespace {

using namespace rules;

std::vector<Value> infer_relu(const Op&, std::span<const Value> inputs) {
  require(inputs.size() == 1, "takes one operand, not {}", inputs.size());
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", inputs[0].shape.size(), real}});
  return {made(inputs[0].shape, Role::activation, real)};
}

std::vector<Value> infer_relu_backward(const Op&, std::span<const Value> inputs) {
  require(inputs.size() == 2 || inputs.size() == 3, "takes y, dy and perhaps more, not {} operands",
          inputs.size());
  const DType real = real_type(inputs);
  const std::size_t rank = inputs[0].shape.size();
  require_operands(inputs.first(2), {{"y", rank, real}, {"dy", rank, real}});
  require_shape(inputs[1], "dy", inputs[0].shape);
  if (inputs.size() == 3) {
    require_operands(inputs.last(1), {{"more", rank, real}});
    require_shape(inputs[2], "more", inputs[0].shape);
  }
  return {made(inputs[0].shape, Role::activation_gradient, real)};
}

std::vector<ValueId> differentiate_relu(GradientContext& context) {
  return {context.builder.emit_one("relu_backward", context.op.name + ".backward",
                                   {context.op.outputs[0], context.d_outputs[0]})};
}

// The sum of two gradients is a gradient, and that of two losses a loss; any other sum is an
// activation.
Role role_of_sum(const Value& a, const Value& b) {
  const bool keeps =
      a.role == Role::gradient || a.role == Role::activation_gradient || a.role == Role::result;
  return keeps && a.role == b.role ? a.role : Role::activation;
}

std::vector<Value> infer_add(const Op&, std::span<const Value> inputs) {
  require(inputs.size() == 2, "takes a and b, not {} operands", inputs.size());
  const DType real = real_type(inputs);
  const std::size_t rank = inputs[0].shape.size();
  require_operands(inputs, {{"a", rank, real}, {"b", rank, real}});
  require_shape(inputs[1], "b", inputs[0].shape);
  return {made(inputs[0].shape, role_of_sum(inputs[0], inputs[1]), real)};
}

const bool relu = Registry<OpDefinition>::instance().add({.name = "relu",
                                                          .summary = "x -> y = max(x, 0)",
                                                          .infer = infer_relu,
                                                          .differentiate = differentiate_relu});

const bool relu_backward = Registry<OpDefinition>::instance().add(
    {.name = "relu_backward",
     .summary = "y, dy, more -> dx = dy + more where y > 0, else 0; only "
                "lower() adds more, the rest of a sum",
     .infer = infer_relu_backward});

const bool add = Registry<OpDefinition>::instance().add(
    {.name = "add",
     .summary = "a, b -> y = a + b, of one shape",
     .infer = infer_add,
     .differentiate = [](GradientContext& context) -> std::vector<ValueId> {
       return {context.d_outputs[0], context.d_outputs[0]};
     }});

}  // namespace
}  // namespace headroom::elementwise_op
