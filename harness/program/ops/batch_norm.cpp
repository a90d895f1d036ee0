// Batch normalisation (Ioffe and Szegedy 2015): by batch statistics in training, by running
// statistics in inference, and the update of the running statistics.
#include "harness/program/ops/rules.h"

namespace headroom::batch_norm_op {
namespace {

using namespace rules;

void require_per_channel(std::span<const Value> inputs, std::size_t first, std::size_t last) {
  const Shape channels = {inputs[0].shape[1]};
  for (std::size_t i = first; i <= last; ++i)
    require_shape(inputs[i], "a per-channel operand", channels);
}

std::vector<Value> infer_training(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real}, {"scale", 1}, {"shift", 1}});
  require_per_channel(inputs, 1, 2);
  require(op.number("epsilon") > 0, "epsilon must be positive");
  const Shape& channels = inputs[1].shape;
  return {made(inputs[0].shape, Role::activation, real), made(channels), made(channels)};
}

std::vector<Value> infer_backward(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs,
                   {{"x", 4, real}, {"dy", 4, real}, {"mean", 1}, {"variance", 1}, {"scale", 1}});
  require_shape(inputs[1], "dy", inputs[0].shape);
  require_per_channel(inputs, 2, 4);
  require(op.number("epsilon") > 0, "epsilon must be positive");
  const Shape& channels = inputs[4].shape;
  return {made(inputs[0].shape, Role::activation_gradient, real), made(channels, Role::gradient),
          made(channels, Role::gradient)};
}

std::vector<Value> infer_inference(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(
      inputs,
      {{"x", 4, real}, {"scale", 1}, {"shift", 1}, {"running_mean", 1}, {"running_variance", 1}});
  require_per_channel(inputs, 1, 4);
  require(op.number("epsilon") > 0, "epsilon must be positive");
  return {made(inputs[0].shape, Role::activation, real)};
}

std::vector<Value> infer_update(const Op& op, std::span<const Value> inputs) {
  require_operands(inputs,
                   {{"running_mean", 1}, {"running_variance", 1}, {"mean", 1}, {"variance", 1}});
  for (const Value& value : inputs) require_shape(value, "an operand", inputs[0].shape);
  require_mutates(op, {0, 1});
  require(op.integer("count") > 1, "an unbiased variance needs count > 1");
  op.number("momentum");
  return {};
}

std::vector<ValueId> differentiate_training(GradientContext& context) {
  require_gradient_of_first_output_only(context);
  const Op& op = context.op;
  const auto gradients = context.builder.emit(
      "batch_norm_backward", op.name + ".backward",
      {op.inputs[0], context.d_outputs[0], op.outputs[1], op.outputs[2], op.inputs[1]},
      {{"epsilon", op.number("epsilon")}});
  return {gradients[0], gradients[1], gradients[2]};
}

const bool training = Registry<OpDefinition>::instance().add(
    {.name = "batch_norm",
     .summary = "x[N,C,H,W], scale[C], shift[C] -> y, mean[C], variance[C] (biased); epsilon",
     .infer = infer_training,
     .differentiate = differentiate_training});

const bool backward = Registry<OpDefinition>::instance().add(
    {.name = "batch_norm_backward",
     .summary = "x, dy, mean[C], variance[C], scale[C] -> dx, dscale[C], dshift[C]; epsilon",
     .infer = infer_backward});

const bool inference = Registry<OpDefinition>::instance().add(
    {.name = "batch_norm_inference",
     .summary = "x, scale[C], shift[C], running_mean[C], running_variance[C] -> y; epsilon",
     .infer = infer_inference});

const bool update = Registry<OpDefinition>::instance().add(
    {.name = "update_statistics",
     .summary = "running_mean, running_variance, mean, variance: running = (1 - momentum) running "
                "+ momentum batch, the variance unbiased by count / (count - 1)",
     .infer = infer_update});

}  // namespace
}  // namespace headroom::batch_norm_op
