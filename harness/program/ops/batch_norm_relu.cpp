// Batch normalisation followed by relu, optionally with a residual sum between them. Not for
// workloads: lowering replaces the separate ops by these kinds.
#include "harness/program/ops/rules.h"

namespace headroom::batch_norm_relu_op {
namespace {

using namespace rules;

void require_batch_norm(const Op& op, std::span<const Value> inputs, std::size_t first_per_channel,
                        std::size_t last_per_channel) {
  for (std::size_t i = first_per_channel; i <= last_per_channel; ++i)
    require_shape(inputs[i], "a per-channel operand", {inputs[0].shape[1]});
  require(op.number("epsilon") > 0, "epsilon must be positive");
}

std::vector<Value> infer_forward(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real}, {"scale", 1}, {"shift", 1}});
  require_batch_norm(op, inputs, 1, 2);
  const Shape& channels = inputs[1].shape;
  return {made(inputs[0].shape, Role::activation, real), made(channels), made(channels)};
}

std::vector<Value> infer_forward_of_sum(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real}, {"scale", 1}, {"shift", 1}, {"a", 4, real}});
  require_shape(inputs[3], "a", inputs[0].shape);
  return infer_forward(op, inputs.first(3));
}

std::vector<Value> infer_backward(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(
      inputs,
      {{"x", 4, real}, {"dy", 4, real}, {"mean", 1}, {"variance", 1}, {"scale", 1}, {"shift", 1}});
  require_shape(inputs[1], "dy", inputs[0].shape);
  require_batch_norm(op, inputs, 2, 5);
  const Shape& channels = inputs[4].shape;
  return {made(inputs[0].shape, Role::activation_gradient, real), made(channels, Role::gradient),
          made(channels, Role::gradient)};
}

std::vector<Value> infer_backward_of_sum(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real},
                            {"dy", 4, real},
                            {"mean", 1},
                            {"variance", 1},
                            {"scale", 1},
                            {"y", 4, real}});
  for (const std::size_t i : {1, 5}) require_shape(inputs[i], "dy or y", inputs[0].shape);
  require_batch_norm(op, inputs, 2, 4);
  const Shape& channels = inputs[4].shape;
  return {made(inputs[0].shape, Role::activation_gradient, real), made(channels, Role::gradient),
          made(channels, Role::gradient), made(inputs[0].shape, Role::activation_gradient, real)};
}

const bool forward = Registry<OpDefinition>::instance().add(
    {.name = "batch_norm_relu",
     .summary = "x[N,C,H,W], scale[C], shift[C] -> y = relu(batch_norm(x)), mean[C], variance[C]; "
                "epsilon",
     .infer = infer_forward});

const bool forward_of_sum = Registry<OpDefinition>::instance().add(
    {.name = "batch_norm_add_relu",
     .summary = "x[N,C,H,W], scale[C], shift[C], a[N,C,H,W] -> y = relu(batch_norm(x) + a), "
                "mean[C], variance[C]; epsilon",
     .infer = infer_forward_of_sum});

const bool backward = Registry<OpDefinition>::instance().add(
    {.name = "batch_norm_relu_backward",
     .summary = "x, dy, mean[C], variance[C], scale[C], shift[C] -> dx, dscale[C], dshift[C]; "
                "epsilon; recomputes from x where relu passed dy on",
     .infer = infer_backward});

const bool backward_of_sum = Registry<OpDefinition>::instance().add(
    {.name = "batch_norm_add_relu_backward",
     .summary = "x, dy, mean[C], variance[C], scale[C], y -> dx, dscale[C], dshift[C], da = dy "
                "where y > 0, else 0; epsilon",
     .infer = infer_backward_of_sum});

}  // namespace
}  // namespace headroom::batch_norm_relu_op
