// Linear layers may multiply 8-bit numbers: x and w in f8e4m3, dy in f8e5m2, whose wider range
// gradients need. The scales of the two factors (see quantise) then follow the other operands, and
// all results but gradients of weights are bf16. These are not separate kinds, because code that
// selects linear layers means these, too.
#include "harness/program/ops/rules.h"

namespace headroom::linear_op {
namespace {

using namespace rules;

struct Factors {
  DType first, second, result;
  std::span<const Value> operands;  // without the scales
};

// `first` and `second` are the required types of 8-bit factors.
Factors factors_of(std::span<const Value> inputs, DType first, DType second) {
  require(!inputs.empty(), "takes operands, not none");
  if (!is_f8(inputs[0].dtype)) {
    const DType real = real_type(inputs);
    return {real, real, real, inputs};
  }
  require(inputs.size() >= 4, "takes the scales of both factors in 8 bits, but has {} operands",
          inputs.size());
  for (const Value& scale : inputs.last(2)) {
    require_operands(std::span(&scale, 1), {{"a scale", 1}});
    require_shape(scale, "a scale", {1});
  }
  return {first, second, DType::bf16, inputs.first(inputs.size() - 2)};
}

std::vector<Value> infer_forward(const Op&, std::span<const Value> inputs) {
  const auto [first, second, result, operands] = factors_of(inputs, DType::f8e4m3, DType::f8e4m3);
  require_operands(operands, {{"x", 2, first}, {"w", 2, second}, {"b", 1}});
  require_shape(inputs[1], "w", {inputs[1].shape[0], inputs[0].shape[1]});
  require_shape(inputs[2], "b", {inputs[1].shape[0]});
  return {made({inputs[0].shape[0], inputs[1].shape[0]}, Role::activation, result)};
}

std::vector<Value> infer_backward_data(const Op&, std::span<const Value> inputs) {
  const auto [first, second, result, operands] = factors_of(inputs, DType::f8e5m2, DType::f8e4m3);
  require_operands(operands, {{"dy", 2, first}, {"w", 2, second}});
  require_shape(inputs[0], "dy", {inputs[0].shape[0], inputs[1].shape[0]});
  return {made({inputs[0].shape[0], inputs[1].shape[1]}, Role::activation_gradient, result)};
}

// The result is f32 whatever the types of x and dy, as for a convolution.
std::vector<Value> infer_backward_weights(const Op&, std::span<const Value> inputs) {
  const auto [first, second, result, operands] = factors_of(inputs, DType::f8e4m3, DType::f8e5m2);
  require_operands(operands, {{"x", 2, first}, {"dy", 2, second}});
  require_shape(inputs[1], "dy", {inputs[0].shape[0], inputs[1].shape[1]});
  return {made({inputs[1].shape[1], inputs[0].shape[1]}, Role::gradient),
          made({inputs[1].shape[1]}, Role::gradient)};
}

std::vector<ValueId> differentiate_linear(GradientContext& context) {
  const Op& op = context.op;
  const ValueId x = op.inputs[0], w = op.inputs[1];
  ValueId dy = context.d_outputs[0];
  std::vector<ValueId> of_weights, of_data;  // scales of the factors
  if (is_f8(context.builder.program().value(x).dtype)) {
    const auto quantised = context.builder.emit("quantise", op.name + ".backward_quantise", {dy},
                                                {{"to", static_cast<std::int64_t>(DType::f8e5m2)}});
    dy = quantised[0];
    of_weights = {op.inputs[3], quantised[1]};
    of_data = {quantised[1], op.inputs[4]};
  }
  const auto emit = [&](const std::string& product, std::vector<ValueId> factors,
                        const std::vector<ValueId>& scales) {
    factors.insert(factors.end(), scales.begin(), scales.end());
    return context.builder.emit("linear_" + product, op.name + "." + product, std::move(factors));
  };
  std::vector<ValueId> gradients(op.inputs.size(), kNoValue);
  if (context.wanted[1] || context.wanted[2]) {
    const auto both = emit("backward_weights", {x, dy}, of_weights);
    gradients[1] = both[0];
    gradients[2] = both[1];
  }
  if (context.wanted[0]) gradients[0] = emit("backward_data", {dy, w}, of_data)[0];
  return gradients;
}

double count(const Shape& samples, const Shape& w) {
  return 2.0 * static_cast<double>(samples[0]) * static_cast<double>(element_count(w));
}

const bool forward = Registry<OpDefinition>::instance().add(
    {.name = "linear",
     .summary = "x[N,I], w[O,I], b[O], in 8 bits scales of x and w -> y[N,O] = x w^T + b",
     .infer = infer_forward,
     .differentiate = differentiate_linear,
     .flops = [](const Op&, std::span<const Value> inputs, std::span<const Value>) {
       return count(inputs[0].shape, inputs[1].shape);
     }});

const bool backward_data = Registry<OpDefinition>::instance().add(
    {.name = "linear_backward_data",
     .summary = "dy[N,O], w[O,I], in 8 bits scales of dy and w -> dx[N,I]",
     .infer = infer_backward_data,
     .flops = [](const Op&, std::span<const Value> inputs, std::span<const Value>) {
       return count(inputs[0].shape, inputs[1].shape);
     }});

const bool backward_weights = Registry<OpDefinition>::instance().add(
    {.name = "linear_backward_weights",
     .summary = "x[N,I], dy[N,O], in 8 bits scales of x and dy -> dw[O,I], db[O]",
     .infer = infer_backward_weights,
     .flops = [](const Op&, std::span<const Value> inputs, std::span<const Value> outputs) {
       return count(inputs[0].shape, outputs[0].shape);
     }});

}  // namespace
}  // namespace headroom::linear_op
