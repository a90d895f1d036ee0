// The softmax of attention over scaled scores, which leaves out padding or later tokens.
#include "harness/program/ops/rules.h"

namespace headroom::softmax_op {
namespace {

using namespace rules;

void require_scale(const Op& op) { require(op.number("scale") > 0, "scale must be positive"); }

std::vector<Value> infer_forward(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real}, {"mask", 2, DType::s32}});
  const Shape& x = inputs[0].shape;
  require_shape(inputs[1], "mask", {x[0], x[3]});
  require_scale(op);
  return {made(x, Role::activation, real)};
}

std::vector<Value> infer_causal(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real}});
  const Shape& x = inputs[0].shape;
  require(x[2] == x[3], "queries and keys must be the same tokens, but x is {}", to_string(x));
  require_scale(op);
  return {made(x, Role::activation, real)};
}

std::vector<Value> infer_backward(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"y", 4, real}, {"dy", 4, real}});
  require_shape(inputs[1], "dy", inputs[0].shape);
  require_scale(op);
  return {made(inputs[0].shape, Role::activation_gradient, real)};
}

const bool forward = Registry<OpDefinition>::instance().add(
    {.name = "masked_softmax",
     .summary = "x[B,A,Q,K], mask s32[B,K] -> y, over each row: exp(scale x) / sum where the mask "
                "is not 0, else 0",
     .infer = infer_forward,
     .differentiate = [](GradientContext& context) -> std::vector<ValueId> {
       const Op& op = context.op;
       return {context.builder.emit_one("masked_softmax_backward", op.name + ".backward",
                                        {op.outputs[0], context.d_outputs[0]}, op.attributes),
               kNoValue};
     }});

// Positions with weight 0 get no gradient, so the backward kind needs no mask.
const bool causal = Registry<OpDefinition>::instance().add(
    {.name = "causal_softmax",
     .summary = "x[B,A,S,S] -> y, over row q: exp(scale x) / sum in columns 0 to q, else 0",
     .infer = infer_causal,
     .differentiate = [](GradientContext& context) -> std::vector<ValueId> {
       const Op& op = context.op;
       return {context.builder.emit_one("masked_softmax_backward", op.name + ".backward",
                                        {op.outputs[0], context.d_outputs[0]}, op.attributes)};
     }});

const bool backward = Registry<OpDefinition>::instance().add(
    {.name = "masked_softmax_backward",
     .summary = "y[B,A,Q,K], dy -> dx = scale y (dy - sum of y dy over its row)",
     .infer = infer_backward});

}  // namespace
}  // namespace headroom::softmax_op
