#include "harness/program/ops/rules.h"

namespace headroom::pooling_op {
namespace {

using namespace rules;

Shape pooled_shape(const Op& op, const Shape& x) {
  const auto& kernel = op.list("kernel");
  require(kernel.size() == 2, "kernel must be two numbers");
  require(x.size() == 4, "images must have 4 dimensions");
  const Window window{{kernel[0], kernel[1]}, op.list("strides"), op.list("padding")};
  for (std::size_t i = 0; i < 2; ++i)
    require(window.padding.size() == 4 && window.padding[i] < kernel[i] &&
                window.padding[i + 2] < kernel[i],
            "padding must be smaller than the kernel, or a window would see padding only");
  const auto [height, width] = slide(window, x[2], x[3]);
  return {x[0], x[1], height, width};
}

std::vector<Value> infer_max(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real}});
  const Shape y = pooled_shape(op, inputs[0].shape);
  return {made(y, Role::activation, real), made(y, Role::workspace, DType::u8)};
}

std::vector<Value> infer_max_backward(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"dy", 4, real}, {"indices", 4, DType::u8}});
  const Shape& x = op.list("input_shape");
  const Shape y = pooled_shape(op, x);
  require_shape(inputs[0], "dy", y);
  require_shape(inputs[1], "indices", y);
  return {made(x, Role::activation_gradient, real)};
}

std::vector<ValueId> differentiate_max(GradientContext& context) {
  require_gradient_of_first_output_only(context);
  const Op& op = context.op;
  Attributes attributes = op.attributes;
  attributes["input_shape"] = context.builder.program().value(op.inputs[0]).shape;
  return {context.builder.emit_one("max_pool_backward", op.name + ".backward",
                                   {context.d_outputs[0], op.outputs[1]}, attributes)};
}

std::vector<Value> infer_average(const Op&, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real}});
  return {made({inputs[0].shape[0], inputs[0].shape[1]}, Role::activation, real)};
}

std::vector<Value> infer_average_backward(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"dy", 2, real}});
  const Shape& x = op.list("input_shape");
  require(x.size() == 4, "input_shape must have 4 dimensions");
  require_shape(inputs[0], "dy", {x[0], x[1]});
  return {made(x, Role::activation_gradient, real)};
}

std::vector<ValueId> differentiate_average(GradientContext& context) {
  const Op& op = context.op;
  const Shape& x = context.builder.program().value(op.inputs[0]).shape;
  return {context.builder.emit_one("global_average_pool_backward", op.name + ".backward",
                                   {context.d_outputs[0]}, {{"input_shape", x}})};
}

const bool max = Registry<OpDefinition>::instance().add(
    {.name = "max_pool",
     .summary = "x[N,C,H,W] -> y, indices u8 (the place of each maximum); kernel[2], strides[2], "
                "padding[4]",
     .infer = infer_max,
     .differentiate = differentiate_max});

const bool max_backward = Registry<OpDefinition>::instance().add(
    {.name = "max_pool_backward",
     .summary = "dy, indices -> dx; kernel[2], strides[2], padding[4], input_shape[4]",
     .infer = infer_max_backward});

const bool average = Registry<OpDefinition>::instance().add(
    {.name = "global_average_pool",
     .summary = "x[N,C,H,W] -> y[N,C], the mean over H and W",
     .infer = infer_average,
     .differentiate = differentiate_average});

const bool average_backward = Registry<OpDefinition>::instance().add(
    {.name = "global_average_pool_backward",
     .summary = "dy[N,C] -> dx = dy / (H W) everywhere; input_shape[4]",
     .infer = infer_average_backward});

}  // namespace
}  // namespace headroom::pooling_op
