// Selects rows by index: embeddings, and the positions that enter a loss.
#include "harness/program/ops/rules.h"

namespace headroom::gather_op {
namespace {

using namespace rules;

std::vector<Value> infer_gather(const Op&, std::span<const Value> inputs) {
  require_operands(inputs, {{"x", 2}, {"rows", 1, DType::s32}});
  return {made({inputs[1].shape[0], inputs[0].shape[1]})};
}

std::vector<Value> infer_backward(const Op& op, std::span<const Value> inputs) {
  require_operands(inputs, {{"rows", 1, DType::s32}, {"dy", 2}});
  const Shape& x = op.list("input_shape");
  require(x.size() == 2, "input_shape must have 2 dimensions");
  require_shape(inputs[1], "dy", {inputs[0].shape[0], x[1]});
  return {made(x, Role::activation_gradient)};
}

std::vector<Value> infer_backward_add(const Op& op, std::span<const Value> inputs) {
  require_operands(inputs, {{"rows", 1, DType::s32}, {"dy", 2}, {"a", 2}});
  std::vector<Value> dx = infer_backward(op, inputs.first(2));
  require_shape(inputs[2], "a", dx[0].shape);
  return dx;
}

std::vector<ValueId> differentiate_gather(GradientContext& context) {
  const Op& op = context.op;
  if (!context.wanted[0]) return {kNoValue, kNoValue};
  const Value x = context.builder.program().value(op.inputs[0]);
  const ValueId dx =
      context.builder.emit_one("gather_rows_backward", op.name + ".backward",
                               {op.inputs[1], context.d_outputs[0]}, {{"input_shape", x.shape}});
  if (x.role == Role::weight) set_role(context.builder, dx, Role::gradient);
  return {dx, kNoValue};
}

const bool gather = Registry<OpDefinition>::instance().add(
    {.name = "gather_rows",
     .summary = "x[R,H], rows s32[N] -> y[N,H] = the rows of x with these numbers",
     .infer = infer_gather,
     .differentiate = differentiate_gather});

const bool backward = Registry<OpDefinition>::instance().add(
    {.name = "gather_rows_backward",
     .summary =
         "rows s32[N], dy[N,H] -> dx[R,H], dense: sums of the dy of each row; input_shape[2]",
     .infer = infer_backward});

const bool backward_add = Registry<OpDefinition>::instance().add(
    {.name = "gather_rows_backward_add",
     .summary = "rows s32[N], dy[N,H], a[R,H] -> gather_rows_backward(rows, dy) + a; "
                "input_shape[2]; made by lowering, not for workloads",
     .infer = infer_backward_add});

}  // namespace
}  // namespace headroom::gather_op
