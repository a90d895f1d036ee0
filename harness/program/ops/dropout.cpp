// Inverted dropout (Srivastava et al. 2014): kept elements are scaled up. The choice depends only
// on key, stream and element, so repeating a step with the same key drops the same elements.
#include "harness/program/ops/rules.h"

namespace headroom::dropout_op {
namespace {

using namespace rules;

void require_rate(const Op& op) {
  require(op.number("rate") > 0 && op.number("rate") < 1, "rate must lie between 0 and 1");
}

std::vector<Value> infer_forward(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 2, "takes x and key, not {} operands", inputs.size());
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", inputs[0].shape.size(), real}, {"key", 1, DType::s32}});
  require_shape(inputs[1], "key", {2});
  require_rate(op);
  require(op.integer("stream") >= 0, "stream must not be negative");
  return {made(inputs[0].shape, Role::activation, real),
          made(inputs[0].shape, Role::activation, DType::u8)};
}

std::vector<Value> infer_backward(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 2, "takes dy and kept, not {} operands", inputs.size());
  const std::size_t rank = inputs[0].shape.size();
  const DType real = real_type(inputs);
  require_operands(inputs, {{"dy", rank, real}, {"kept", rank, DType::u8}});
  require_shape(inputs[1], "kept", inputs[0].shape);
  require_rate(op);
  return {made(inputs[0].shape, Role::activation_gradient, real)};
}

const bool forward = Registry<OpDefinition>::instance().add(
    {.name = "dropout",
     .summary = "x, key s32[2] -> y = x / (1 - rate) where kept, else 0; kept u8 (0 or 1), by "
                "Philox4x32-10 of key, stream and the element's number",
     .infer = infer_forward,
     .differentiate = [](GradientContext& context) -> std::vector<ValueId> {
       require_gradient_of_first_output_only(context);
       const Op& op = context.op;
       return {context.builder.emit_one("dropout_backward", op.name + ".backward",
                                        {context.d_outputs[0], op.outputs[1]},
                                        {{"rate", op.number("rate")}}),
               kNoValue};
     }});

const bool backward = Registry<OpDefinition>::instance().add(
    {.name = "dropout_backward",
     .summary = "dy, kept u8 -> dx = dy / (1 - rate) where kept, else 0",
     .infer = infer_backward});

}  // namespace
}  // namespace headroom::dropout_op
