// Convolutions (cross-correlations, as everywhere in deep learning) without bias or groups.
#include "harness/program/ops/rules.h"

namespace headroom::convolution_op {
namespace {

using namespace rules;

Shape output_shape(const Op& op, const Shape& x, const Shape& w) {
  require(x.size() == 4 && w.size() == 4, "images and weights must have 4 dimensions");
  require(x[1] == w[1], "x has {} channels, but w takes {}", x[1], w[1]);
  const Window window{{w[2], w[3]}, op.list("strides"), op.list("padding")};
  const auto [height, width] = slide(window, x[2], x[3]);
  return {x[0], w[0], height, width};
}

std::vector<Value> infer_forward(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real}, {"w", 4, real}});
  return {made(output_shape(op, inputs[0].shape, inputs[1].shape), Role::activation, real)};
}

std::vector<Value> infer_backward_data(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"dy", 4, real}, {"w", 4, real}});
  const Shape& x = op.list("input_shape");
  require_shape(inputs[0], "dy", output_shape(op, x, inputs[1].shape));
  return {made(x, Role::activation_gradient, real)};
}

// The result is f32 whatever the types of x and dy: the weight that it updates is f32, and
// precision lost by rounding a sum over the batch could not be recovered.
std::vector<Value> infer_backward_weights(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real}, {"dy", 4, real}});
  const Shape& w = op.list("weight_shape");
  require_shape(inputs[1], "dy", output_shape(op, inputs[0].shape, w));
  return {made(w, Role::gradient)};
}

std::vector<ValueId> differentiate_convolution(GradientContext& context) {
  const Op& op = context.op;
  const ValueId x = op.inputs[0];
  const ValueId w = op.inputs[1];
  const ValueId dy = context.d_outputs[0];
  const auto attributes = [&](const char* shape_name, ValueId shaped) -> Attributes {
    return {{"strides", op.list("strides")},
            {"padding", op.list("padding")},
            {shape_name, context.builder.program().value(shaped).shape}};
  };
  std::vector<ValueId> gradients = {kNoValue, kNoValue};
  if (context.wanted[1])
    gradients[1] =
        context.builder.emit_one("convolution_backward_weights", op.name + ".backward_weights",
                                 {x, dy}, attributes("weight_shape", w));
  if (context.wanted[0])
    gradients[0] = context.builder.emit_one("convolution_backward_data", op.name + ".backward_data",
                                            {dy, w}, attributes("input_shape", x));
  return gradients;
}

// All three passes multiply and add once per output element, input channel and kernel cell.
double count(const Shape& y, const Shape& w) {
  return 2.0 * static_cast<double>(element_count(y)) * static_cast<double>(w[1] * w[2] * w[3]);
}

std::vector<Value> infer_transposed(const Op& op, std::span<const Value> inputs) {
  const DType real = real_type(inputs);
  require_operands(inputs, {{"x", 4, real}, {"w", 4, real}});
  const Shape &x = inputs[0].shape, &w = inputs[1].shape;
  const auto &strides = op.list("strides"), &padding = op.list("padding");
  require(strides.size() == 2 && padding.size() == 4, "takes strides[2] and padding[4]");
  Shape y = {x[0], w[1]};
  for (std::size_t i = 0; i < 2; ++i)
    y.push_back((x[2 + i] - 1) * strides[i] + w[2 + i] - padding[i] - padding[2 + i]);
  require_shape(inputs[0], "x", output_shape(op, y, w));
  return {made(y, Role::activation, real)};
}

// The gradients of a transposed convolution are those of a convolution with the sides exchanged.
std::vector<ValueId> differentiate_transposed(GradientContext& context) {
  const Op& op = context.op;
  const ValueId x = op.inputs[0], w = op.inputs[1], dy = context.d_outputs[0];
  std::vector<ValueId> gradients = {kNoValue, kNoValue};
  Attributes attributes = op.attributes;
  if (context.wanted[0]) {
    gradients[0] =
        context.builder.emit_one("convolution", op.name + ".backward_data", {dy, w}, attributes);
    set_role(context.builder, gradients[0], Role::activation_gradient);
  }
  attributes["weight_shape"] = context.builder.program().value(w).shape;
  if (context.wanted[1])
    gradients[1] = context.builder.emit_one("convolution_backward_weights",
                                            op.name + ".backward_weights", {dy, x}, attributes);
  return gradients;
}

const bool transposed = Registry<OpDefinition>::instance().add(
    {.name = "transposed_convolution",
     .summary = "x[N,I,H,W], w[I,O,kh,kw] -> y[N,O,H',W'], H' = (H - 1) stride + kh - padding; "
                "strides[2], padding[4]",
     .infer = infer_transposed,
     .differentiate = differentiate_transposed,
     .flops = [](const Op&, std::span<const Value> inputs, std::span<const Value>) {
       return count(inputs[0].shape, inputs[1].shape);
     }});

const bool forward = Registry<OpDefinition>::instance().add(
    {.name = "convolution",
     .summary = "x[N,C,H,W], w[O,C,kh,kw] -> y[N,O,H',W']; strides[2], padding[4]",
     .infer = infer_forward,
     .differentiate = differentiate_convolution,
     .flops = [](const Op&, std::span<const Value> inputs, std::span<const Value> outputs) {
       return count(outputs[0].shape, inputs[1].shape);
     }});

const bool backward_data = Registry<OpDefinition>::instance().add(
    {.name = "convolution_backward_data",
     .summary = "dy[N,O,H',W'], w[O,C,kh,kw] -> dx; strides[2], padding[4], input_shape[4]",
     .infer = infer_backward_data,
     .flops = [](const Op&, std::span<const Value> inputs, std::span<const Value>) {
       return count(inputs[0].shape, inputs[1].shape);
     }});

const bool backward_weights = Registry<OpDefinition>::instance().add(
    {.name = "convolution_backward_weights",
     .summary = "x[N,C,H,W], dy[N,O,H',W'] -> dw; strides[2], padding[4], weight_shape[4]",
     .infer = infer_backward_weights,
     .flops = [](const Op&, std::span<const Value> inputs, std::span<const Value> outputs) {
       return count(inputs[1].shape, outputs[0].shape);
     }});

}  // namespace
}  // namespace headroom::convolution_op
