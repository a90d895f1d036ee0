#include "tests/cuda/one_op_programs.h"

#include <fmt/format.h>

#include <set>

#include "harness/program/conditional.h"

namespace headroom::testing {

ValueId operand(ProgramBuilder& build, const std::string& name, const Shape& shape, DType type) {
  const ValueId x = build.input(name, shape, DType::f32);
  if (type == DType::f32) return x;
  return build.emit_one("cast", name + ".cast", {x}, {{"to", static_cast<std::int64_t>(type)}});
}

namespace {

ValueId f32(ProgramBuilder& build, const std::string& name, const Shape& shape) {
  return build.input(name, shape, DType::f32);
}

void elementwise(Sizes& size, ProgramBuilder& build, DType type) {
  const Shape shape = {size(1, 40), size(1, 90)};
  const auto x = operand(build, "x", shape, type), dy = operand(build, "dy", shape, type);
  const Attributes slope = {{"slope", 0.2}};
  build.emit_one("add", "add", {x, dy});
  const auto y = build.emit_one("relu", "relu", {x});
  build.emit_one("relu_backward", "relu.back", {y, dy});
  build.emit_one("relu_backward", "relu.back.sum", {y, dy, x});
  const auto leaky = build.emit_one("leaky_relu", "leaky", {x}, slope);
  build.emit_one("leaky_relu_backward", "leaky.back", {leaky, dy}, slope);
  build.emit_one("gelu", "gelu", {x});
  build.emit_one("gelu_backward", "gelu.back", {x, dy});
  const auto z = build.emit_one("tanh", "tanh", {x});
  build.emit_one("tanh_backward", "tanh.back", {z, dy});
  if (type != DType::f32)
    build.emit_one("cast", "widened", {x}, {{"to", static_cast<std::int64_t>(DType::f32)}});
}

void dropout(Sizes& size, ProgramBuilder& build, DType type) {
  const Shape shape = {size(1, 9), size(1, 300)};
  const auto x = operand(build, "x", shape, type), dy = operand(build, "dy", shape, type);
  const double rate = static_cast<double>(size(1, 9)) / 10;
  const auto y = build.emit("dropout", "drop", {x, build.input("key", {2}, DType::s32)},
                            {{"rate", rate}, {"stream", size(0, 100)}});
  build.emit_one("dropout_backward", "drop.back", {dy, y[1]}, {{"rate", rate}});
}

void layer_norm(Sizes& size, ProgramBuilder& build, DType type) {
  const Shape shape = {size(1, 90), size(2, 150)};
  const auto x = operand(build, "x", shape, type), dy = operand(build, "dy", shape, type);
  const auto scale = f32(build, "scale", {shape[1]}), shift = f32(build, "shift", {shape[1]});
  const auto y = build.emit("layer_norm", "norm", {x, scale, shift}, {{"epsilon", 1e-2}});
  build.emit("layer_norm_backward", "norm.back", {x, dy, y[1], y[2], scale});
}

void batch_norm(Sizes& size, ProgramBuilder& build, DType type) {
  // Sometimes there are so many channels that several images form a group.
  const Shape shape = size.coin() ? Shape{4, size(400, 600), 1, size(1, 3)}
                                  : Shape{size(1, 5), size(1, 20), size(1, 9), size(2, 9)};
  const auto x = operand(build, "x", shape, type), dy = operand(build, "dy", shape, type);
  const auto per_channel = [&](const char* name) { return f32(build, name, {shape[1]}); };
  const auto scale = per_channel("scale"), shift = per_channel("shift");
  const auto mean = per_channel("running_mean"), variance = per_channel("running_variance");
  const Attributes epsilon = {{"epsilon", 1e-2}};
  const auto y = build.emit("batch_norm", "norm", {x, scale, shift}, epsilon);
  build.emit("batch_norm_backward", "norm.back", {x, dy, y[1], y[2], scale}, epsilon);
  build.emit("batch_norm_inference", "infer", {x, scale, shift, mean, variance}, epsilon);
  const auto relu = build.emit("batch_norm_relu", "relu", {x, scale, shift}, epsilon);
  build.emit("batch_norm_relu_backward", "relu.back", {x, dy, relu[1], relu[2], scale, shift},
             epsilon);
  build.emit("batch_norm_add_relu", "sum", {x, scale, shift, dy}, epsilon);
  build.emit("update_statistics", "update", {mean, variance, y[1], y[2]},
             {{"momentum", 0.1}, {"count", shape[0] * shape[2] * shape[3]}}, {mean, variance});
}

void pooling(Sizes& size, ProgramBuilder& build, DType type) {
  const Shape shape = {size(1, 4), size(1, 20), size(3, 12), size(3, 12)};
  const Shape kernel = {size(1, 3), size(1, 3)};
  Attributes window = {{"kernel", kernel}, {"strides", Shape{size(1, 3), size(1, 3)}}};
  window["padding"] = Shape{size(0, kernel[0] - 1), size(0, kernel[1] - 1), size(0, kernel[0] - 1),
                            size(0, kernel[1] - 1)};
  const auto x = operand(build, "x", shape, type);
  const auto y = build.emit("max_pool", "max", {x}, window);
  window["input_shape"] = shape;
  const Shape pooled = build.program().value(y[0]).shape;
  build.emit("max_pool_backward", "max.back", {operand(build, "dy", pooled, type), y[1]}, window);
  build.emit_one("global_average_pool", "mean", {x});
  build.emit_one("global_average_pool_backward", "mean.back",
                 {operand(build, "dz", {shape[0], shape[1]}, type)}, {{"input_shape", shape}});
}

void resampling(Sizes& size, ProgramBuilder& build, DType type) {
  const Shape shape = {size(1, 4), size(1, 20), size(1, 9), size(1, 9)};
  const std::int64_t factor = size(1, 4);
  const Attributes attributes = {{"factor", factor}, {"scale", 0.7}};
  build.emit_one("upsample", "up", {operand(build, "x", shape, type)}, attributes);
  const Shape larger = {shape[0], shape[1], factor * shape[2], factor * shape[3]};
  build.emit_one("sum_pool", "down", {operand(build, "z", larger, type)}, attributes);
}

void attention_softmax(Sizes& size, ProgramBuilder& build, DType type) {
  const std::int64_t length = size(1, 40);
  const Shape shape = {size(1, 3), size(1, 4), length, length};
  const auto x = operand(build, "x", shape, type), dy = operand(build, "dy", shape, type);
  const auto mask = build.input("mask", {shape[0], length}, DType::s32);
  const Attributes scale = {{"scale", 0.3}};
  const auto y = build.emit_one("masked_softmax", "padded", {x, mask}, scale);
  build.emit_one("causal_softmax", "causal", {x}, scale);
  build.emit_one("masked_softmax_backward", "back", {y, dy}, scale);
}

// Labels are below 4; the test sets those of the first rows to "ignored".
void losses(Sizes& size, ProgramBuilder& build, DType) {
  const Shape shape = {size(1, 90), size(4, 150)};
  const auto logits = f32(build, "logits", shape);
  const auto labels = build.input("labels", {shape[0]}, DType::s32);
  const auto y = build.emit("softmax_cross_entropy", "loss", {logits, labels});
  build.emit_one("softmax_cross_entropy_backward", "loss.back", {y[1], labels});
  build.emit_one("count_correct", "hits", {logits, labels});
  build.emit_one("count_labels", "counted", {labels});
  const Attributes target = {{"target", size.coin() ? 1.0 : 0.1}};
  build.emit_one("sigmoid_cross_entropy", "sigmoid", {logits}, target);
  build.emit_one("sigmoid_cross_entropy_backward", "sigmoid.back", {logits}, target);
}

void gather(Sizes& size, ProgramBuilder& build, DType) {
  const Shape table = {size(4, 60), size(1, 50)};
  // Four rows are selected, sometimes more often than one thread sums up.
  const auto rows = build.input("rows", {size(1, 400)}, DType::s32);
  const auto y = build.emit_one("gather_rows", "rows", {f32(build, "x", table), rows});
  const auto dy = f32(build, "dy", build.program().value(y).shape);
  build.emit_one("gather_rows_backward", "rows.back", {rows, dy}, {{"input_shape", table}});
}

void linear(Sizes& size, ProgramBuilder& build, DType type) {
  const std::int64_t n = size(1, 40), in = size(1, 30), out = size(1, 50);
  const auto x = operand(build, "x", {n, in}, type), dy = operand(build, "dy", {n, out}, type);
  const auto w = operand(build, "w", {out, in}, type);
  // The device rounds the bias to 16 bits in 16-bit products, so this bias is already exact there.
  auto b = operand(build, "b", {out}, type);
  if (type != DType::f32)
    b = build.emit_one("cast", "b.f32", {b}, {{"to", static_cast<std::int64_t>(DType::f32)}});
  build.emit_one("linear", "linear", {x, w, b});
  build.emit_one("linear_backward_data", "linear.data", {dy, w});
  build.emit("linear_backward_weights", "linear.weights", {x, dy});
}

// Sides that GPUs accept, with the 8-bit operands and the values from which they are made.
void linear_in_8_bits(Sizes& size, ProgramBuilder& build, DType type) {
  const auto side = [&] { return 16 * size(1, 5); };
  const std::int64_t n = side(), in = side(), out = side();
  const auto codes = [&](const char* name, const Shape& shape, DType to) {
    return build.emit("quantise", std::string(name) + ".codes", {operand(build, name, shape, type)},
                      {{"to", static_cast<std::int64_t>(to)}});
  };
  const auto x = codes("x", {n, in}, DType::f8e4m3), w = codes("w", {out, in}, DType::f8e4m3);
  const auto dy = codes("dy", {n, out}, DType::f8e5m2);
  // The device rounds the bias to 16 bits, so this bias is already exact there.
  const auto bias = build.emit_one("cast", "b.f32", {operand(build, "b", {out}, DType::bf16)},
                                   {{"to", static_cast<std::int64_t>(DType::f32)}});
  build.emit_one("linear", "linear", {x[0], w[0], bias, x[1], w[1]});
  build.emit_one("linear_backward_data", "linear.data", {dy[0], w[0], dy[1], w[1]});
  build.emit("linear_backward_weights", "linear.weights", {x[0], dy[0], x[1], dy[1]});
}

// All layouts of the operands.
void batched_matmul(Sizes& size, ProgramBuilder& build, DType type) {
  const std::int64_t samples = size(1, 4), heads = size(1, 4);
  const std::int64_t rows = size(1, 12), inner = size(1, 12), columns = size(1, 12);
  const auto matrix = [&](const char* name, std::int64_t high, std::int64_t wide, bool turned,
                          bool merged) {
    if (turned) std::swap(high, wide);
    const Shape shape =
        merged ? Shape{samples * high, heads * wide} : Shape{samples, heads, high, wide};
    return operand(build, name, shape, type);
  };
  const bool ta = size.coin(), tb = size.coin(), ma = size.coin(), mb = size.coin();
  build.emit_one("batched_matmul", "product",
                 {matrix("a", rows, inner, ta, ma), matrix("b", inner, columns, tb, mb)},
                 {{"batch", Shape{samples, heads}},
                  {"transposed", Shape{ta ? 1 : 0, tb ? 1 : 0}},
                  {"merged", Shape{ma ? 1 : 0, mb ? 1 : 0, size(0, 1)}}});
}

// In half of the runs the flag skips the op.
void updates(Sizes& size, ProgramBuilder& build, DType) {
  const Shape shape = size.coin() ? Shape{size(1, 60)} : Shape{size(1, 20), size(1, 9), size(1, 9)};
  const auto flag = build.emit_one("relu", "flag", {f32(build, "chance", {1})});
  const auto steps = f32(build, "steps", {1}), factor = f32(build, "factor", {1});
  const auto update = [&](const char* kind, std::vector<ValueId> inputs, Attributes attributes,
                          std::vector<ValueId> mutates) {
    build.emit(kind, kind, std::move(inputs), std::move(attributes), std::move(mutates));
    do_unless(build.program().ops.back(), flag);
  };
  const auto like_weight = [&](const std::string& name) { return f32(build, name, shape); };
  const auto g = like_weight("gradient");
  const auto w = like_weight("sgd"), v = like_weight("velocity");
  update("sgd_momentum", {w, g, v},
         {{"learning_rate", 0.1}, {"momentum", 0.9}, {"weight_decay", 0.01}}, {w, v});
  const auto a = like_weight("adam"), m = like_weight("mean"), s = like_weight("mean_square");
  update("adam", {a, g, m, s, steps},
         {{"learning_rate", 0.1},
          {"beta1", 0.9},
          {"beta2", 0.99},
          {"epsilon", 1e-3},
          {"weight_decay", 0.01}},
         {a, m, s});
  update("scale_gradient", {g, factor}, {}, {g});
  update("count_step", {steps}, {}, {steps});
  const auto sum = like_weight("sum");
  build.emit("accumulate", "begin", {sum, g}, {{"scale", 0.5}, {"start", std::int64_t{1}}}, {sum});
  build.emit("accumulate", "go on", {sum, g, factor}, {{"scale", 0.5}, {"start", std::int64_t{0}}},
             {sum});
  build.emit("divide", "divide", {sum, steps}, {}, {sum});
  build.emit("divide", "divide by nothing", {sum, flag}, {}, {sum});
}

// Sometimes one launch cannot hold all weights. In half of the runs the flag skips the update.
void update_lists(Sizes& size, ProgramBuilder& build, DType) {
  const auto flag = build.emit_one("relu", "flag", {f32(build, "chance", {1})});
  const auto steps = f32(build, "steps", {1});
  const Attributes sgd = {{"learning_rate", 0.1}, {"momentum", 0.9}, {"weight_decay", 0.01}};
  const Attributes adam = {{"learning_rate", 0.1},
                           {"beta1", 0.9},
                           {"beta2", 0.99},
                           {"epsilon", 1e-3},
                           {"weight_decay", 0.01}};
  std::vector<Shape> shapes(static_cast<std::size_t>(size.coin() ? size(1, 5) : size(45, 110)));
  for (Shape& shape : shapes)
    shape = size.coin() ? Shape{size(1, 60)} : Shape{size(1, 9), size(1, 9)};
  const auto update = [&](const std::string& kind, const Attributes& attributes,
                          std::vector<const char*> names, std::set<std::size_t> changed) {
    std::vector<ValueId> inputs, mutates;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      for (std::size_t place = 0; place < names.size(); ++place) {
        inputs.push_back(f32(build, fmt::format("{}{}.{}", kind, i, names[place]), shapes[i]));
        if (changed.contains(place)) mutates.push_back(inputs.back());
      }
    if (kind == "fused_adam" || kind.ends_with("roots") || kind.ends_with("weights"))
      inputs.push_back(steps);
    build.emit(kind, kind, inputs, attributes, mutates);
    if (!changed.empty()) do_unless(build.program().ops.back(), flag);
  };
  update("fused_sgd_momentum", sgd, {"w", "g", "v"}, {0, 2});
  update("foreach_weight_decay", sgd, {"w", "g"}, {});
  update("fused_adam", adam, {"w", "g", "m", "square"}, {0, 2, 3});
  update("foreach_adam_moments", adam, {"g", "m", "square"}, {1, 2});
  update("foreach_adam_roots", adam, {"square"}, {});
  update("foreach_adam_weights", adam, {"w", "m", "square"}, {0});
}

void adafactor(Sizes& size, ProgramBuilder& build, DType) {
  const bool factored = size.coin();
  const Shape shape = factored ? Shape{size(1, 20), size(1, 9), size(1, 9)} : Shape{size(1, 60)};
  const auto flag = build.emit_one("relu", "flag", {f32(build, "chance", {1})});
  const auto w = f32(build, "w", shape), g = f32(build, "g", shape);
  const std::int64_t columns = element_count(shape) / shape[0];
  std::vector<ValueId> inputs = {w, g}, mutates = {w};
  const std::vector<Shape> states =
      factored ? std::vector<Shape>{{shape[0]}, {columns}} : std::vector<Shape>{shape};
  for (std::size_t i = 0; i < states.size(); ++i) {
    inputs.push_back(f32(build, std::to_string(i) + ".square", states[i]));
    mutates.push_back(inputs.back());
  }
  inputs.push_back(f32(build, "steps", {1}));
  build.emit("adafactor", "update", inputs,
             {{"clip_threshold", 0.7},
              {"decay_rate", 0.8},
              {"epsilon1", 1e-6},
              {"epsilon2", 1e-3},
              {"learning_rate", 0.1},
              {"relative", size(0, 1)}},
             mutates);
  do_unless(build.program().ops.back(), flag);
}

void gradients(Sizes& size, ProgramBuilder& build, DType) {
  const auto scale = f32(build, "loss_scale", {1}), good = f32(build, "good_steps", {1});
  std::vector<ValueId> gradients;
  for (std::int64_t i = size(1, 4); i > 0; --i)
    gradients.push_back(f32(build, fmt::format("g{}", i), {size(1, 3000)}));
  build.emit_one("clip_factor", "clip", gradients, {{"largest_norm", size.coin() ? 1e-1 : 1e3}});
  gradients.insert(gradients.begin(), scale);
  const auto found = build.emit("check_gradients", "check", gradients);
  // Adjusts the scale after finite gradients and after gradients that have overflowed.
  const auto skipped = f32(build, "skipped", {1});
  const auto overflow = build.emit_one("relu", "overflow", {f32(build, "chance", {1})});
  for (const ValueId flag : {found[0], overflow})
    build.emit("adjust_loss_scale", "adjust", {flag, scale, good, skipped},
               {{"growth", 2.0}, {"backoff", 0.5}, {"growth_interval", size(1, 2)}},
               {scale, good, skipped});
}

// Steps are whole numbers in operands whose name contains "count".
void masks(Sizes& size, ProgramBuilder& build, DType) {
  const Shape shape = {size(1, 9), 4 * size(1, 5), size(1, 3), size(1, 3)};
  const auto w = f32(build, "w", shape), mask = f32(build, "mask", shape);
  const auto steps = f32(build, "step_count", {1});
  const auto y = build.emit_one("masked", "masked", {w, mask});
  build.emit("magnitude_mask", "magnitude", {w, mask, steps},
             {{"initial", 0.1},
              {"final", 0.8},
              {"begin", std::int64_t{1}},
              {"end", size(3, 9)},
              {"every", size(1, 2)}},
             {mask});
  build.emit("two_of_four_mask", "two_of_four", {w, mask, steps}, {{"begin", size(1, 3)}}, {mask});
  build.emit("apply_mask", "apply", {w, mask}, {}, {w});
  build.emit("hold", "hold", {y});
}

void transposed_convolution(Sizes& size, ProgramBuilder& build, DType type) {
  const std::int64_t pad = size(0, 1);
  const Shape w = {size(1, 9), size(1, 9), 3, 3};
  build.emit_one("transposed_convolution", "up",
                 {operand(build, "x", {size(1, 3), w[0], size(2, 7), size(2, 7)}, type),
                  operand(build, "w", w, type)},
                 {{"strides", Shape{2, 2}}, {"padding", Shape{pad, pad, pad, pad}}});
}

void convolution(Sizes& size, ProgramBuilder& build, DType type) {
  const Shape x = {size(1, 3), size(1, 20), size(4, 13), size(4, 13)};
  const Shape w = {size(1, 20), x[1], size(1, 4), size(1, 4)};
  const std::int64_t high = size(0, w[2] - 1), wide = size(0, w[3] - 1);
  Attributes window = {{"strides", Shape{size(1, 2), size(1, 2)}},
                       {"padding", Shape{high, wide, high, wide}}};
  const auto of_x = operand(build, "x", x, type), of_w = operand(build, "w", w, type);
  const auto y = build.emit_one("convolution", "conv", {of_x, of_w}, window);
  const auto dy = operand(build, "dy", build.program().value(y).shape, type);
  Attributes data = window, weights = window;
  data["input_shape"] = x;
  weights["weight_shape"] = w;
  build.emit_one("convolution_backward_data", "conv.data", {dy, of_w}, data);
  build.emit_one("convolution_backward_weights", "conv.weights", {of_x, dy}, weights);
}

// All ops that take images in either order, behind a convolution and before its gradients: in 16
// bits the rules keep these images channels-last. Few channels with many pixels, or the reverse.
void images(Sizes& size, ProgramBuilder& build, DType type) {
  const bool large = size(0, 2) == 0;
  const std::int64_t most = large ? 1 : 5;
  const std::int64_t channels = size.coin() ? 8 * size(1, most) : size(1, 4 * most);
  const Shape x = {large ? 5 : size(1, 4), size(1, 9), large ? 31 : size(1, 9), size(3, 9)};
  const std::int64_t pad = size(0, 1);
  const Shape w = {channels, x[1], size.coin() ? 1 : 1 + 2 * pad, 1 + 2 * pad};
  const Attributes conv = {{"strides", Shape{size(1, 2), size(1, 2)}},
                           {"padding", Shape{w[2] / 2, pad, w[2] / 2, pad}}};
  const auto of_x = operand(build, "x", x, type), of_w = operand(build, "w", w, type);
  const auto y = build.emit_one("convolution", "conv", {of_x, of_w}, conv);
  const Shape shape = build.program().value(y).shape;
  const auto dy = operand(build, "dy", shape, type);
  const auto per_channel = [&](const char* name) { return f32(build, name, {channels}); };
  const auto scale = per_channel("scale"), shift = per_channel("shift");
  const auto mean = per_channel("running_mean"), variance = per_channel("running_variance");
  const Attributes epsilon = {{"epsilon", 1e-2}}, slope = {{"slope", 0.2}};
  const auto norm = build.emit("batch_norm", "norm", {y, scale, shift}, epsilon);
  build.emit_one("batch_norm_inference", "infer", {y, scale, shift, mean, variance}, epsilon);
  const auto relu = build.emit("batch_norm_relu", "relu", {y, scale, shift}, epsilon);
  const auto sum = build.emit("batch_norm_add_relu", "sum", {y, scale, shift, norm[0]}, epsilon);
  const auto back =
      build.emit("batch_norm_backward", "back", {y, dy, norm[1], norm[2], scale}, epsilon);
  const auto through = build.emit("batch_norm_relu_backward", "through",
                                  {y, dy, relu[1], relu[2], scale, shift}, epsilon);
  const auto gradients = build.emit_one("add", "add", {back[0], through[0]});
  const auto last = build.emit_one("relu_backward", "last", {sum[0], gradients});
  build.emit_one("leaky_relu", "leaky", {gradients}, slope);
  const Shape kernel = {size(1, std::min<std::int64_t>(3, shape[2])),
                        size(1, std::min<std::int64_t>(3, shape[3]))};
  Attributes window = {{"kernel", kernel}, {"strides", Shape{size(1, 3), size(1, 3)}}};
  window["padding"] = Shape{kernel[0] / 2, kernel[1] / 2, kernel[0] / 2, kernel[1] / 2};
  const auto pooled = build.emit("max_pool", "max", {relu[0]}, window);
  window["input_shape"] = shape;
  build.emit("max_pool_backward", "max.back", {pooled[0], pooled[1]}, window);
  const auto average = build.emit_one("global_average_pool", "mean", {sum[0]});
  const auto spread = build.emit_one("global_average_pool_backward", "mean.back", {average},
                                     {{"input_shape", shape}});
  build.emit_one("relu_backward", "first", {sum[0], spread});
  if (type != DType::f32)
    build.emit_one("cast", "widened", {norm[0]}, {{"to", static_cast<std::int64_t>(DType::f32)}});
  Attributes data = conv, weights = conv;
  data["input_shape"] = x;
  weights["weight_shape"] = w;
  build.emit_one("convolution_backward_data", "conv.data", {last, of_w}, data);
  build.emit_one("convolution_backward_weights", "conv.weights", {of_x, last}, weights);
}

}  // namespace

std::vector<OneOp> one_op_programs() {
  return {
      {"elementwise", true, elementwise},
      {"dropout", true, dropout},
      {"layer_norm", true, layer_norm},
      {"batch_norm", true, batch_norm},
      {"pooling", true, pooling},
      {"attention_softmax", true, attention_softmax},
      {"losses", false, losses},
      {"gather", false, gather},
      {"linear", true, linear},
      {"batched_matmul", true, batched_matmul},
      {"updates", false, updates},
      {"update_lists", false, update_lists},
      {"adafactor", false, adafactor},
      {"gradients", false, gradients},
      {"masks", false, masks},
      {"resampling", true, resampling},
  };
}

std::vector<OneOp> programs_in_8_bits() { return {{"linear in 8 bits", true, linear_in_8_bits}}; }

std::vector<OneOp> convolution_programs() {
  return {
      {"images", true, images},
      {"convolution", true, convolution},
      {"transposed_convolution", true, transposed_convolution},
  };
}

}  // namespace headroom::testing
