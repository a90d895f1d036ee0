#include "harness/program/ops/rules.h"

namespace headroom {
namespace {

using namespace rules;

std::vector<Value> infer_forward(const Op&, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 2, real}, {"w", 2, real}, {"b", 1}});
  require_shape(inputs[1], "w", {inputs[1].shape[0], inputs[0].shape[1]});
  require_shape(inputs[2], "b", {inputs[1].shape[0]});
  return {made({inputs[0].shape[0], inputs[1].shape[0]}, Role::activation, real)};
}

std::vector<Value> infer_backward_data(const Op&, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"dy", 2, real}, {"w", 2, real}});
  require_shape(inputs[0], "dy", {inputs[0].shape[0], inputs[1].shape[0]});
  return {made({inputs[0].shape[0], inputs[1].shape[1]}, Role::activation_gradient, real)};
}

// In f32 whatever x and dy are, as a convolution's.
std::vector<Value> infer_backward_weights(const Op&, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 2, real}, {"dy", 2, real}});
  require_shape(inputs[1], "dy", {inputs[0].shape[0], inputs[1].shape[1]});
  return {made({inputs[1].shape[1], inputs[0].shape[1]}, Role::gradient),
          made({inputs[1].shape[1]}, Role::gradient)};
}

std::vector<ValueId> differentiate_linear(GradientContext& context) {
  const Op& op = context.op;
  const ValueId dy = context.d_outputs[0];
  std::vector<ValueId> gradients = {kNoValue, kNoValue, kNoValue};
  if (context.wanted[1] || context.wanted[2]) {
    const auto both = context.builder.emit("linear_backward_weights", op.name + ".backward_weights",
                                           {op.inputs[0], dy});
    gradients[1] = both[0];
    gradients[2] = both[1];
  }
  if (context.wanted[0])
    gradients[0] = context.builder.emit_one("linear_backward_data", op.name + ".backward_data",
                                            {dy, op.inputs[1]});
  return gradients;
}

double count(const Shape& samples, const Shape& w) {
  return 2.0 * static_cast<double>(samples[0] * w[0] * w[1]);
}

const bool forward = Registry<OpDefinition>::instance().add(
    {.name = "linear",
     .summary = "x[N,I], w[O,I], b[O] -> y[N,O] = x w^T + b",
     .infer = infer_forward,
     .differentiate = differentiate_linear,
     .flops = [](const Op&, std::span<const Value> inputs, std::span<const Value>) {
       return count(inputs[0].shape, inputs[1].shape);
     }});

const bool backward_data = Registry<OpDefinition>::instance().add(
    {.name = "linear_backward_data",
     .summary = "dy[N,O], w[O,I] -> dx[N,I]",
     .infer = infer_backward_data,
     .flops = [](const Op&, std::span<const Value> inputs, std::span<const Value>) {
       return count(inputs[0].shape, inputs[1].shape);
     }});

const bool backward_weights = Registry<OpDefinition>::instance().add(
    {.name = "linear_backward_weights",
     .summary = "x[N,I], dy[N,O] -> dw[O,I], db[O]",
     .infer = infer_backward_weights,
     .flops = [](const Op&, std::span<const Value> inputs, std::span<const Value> outputs) {
       return count(inputs[0].shape, outputs[0].shape);
     }});

}  // namespace
}  // namespace headroom
