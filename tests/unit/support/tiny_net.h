// A residual network small enough for finite differences, with every kind of op that training uses.
// Sizes are odd to catch layout errors: 3 image channels, 10 inner channels and 7x5 images by
// default.
#pragma once

#include "harness/program/program.h"

namespace headroom::testing {

inline Program tiny_residual_net(std::int64_t batch = 2, std::int64_t channels = 10,
                                 std::int64_t height = 7, std::int64_t width = 5) {
  Program program;
  program.name = "train";
  ProgramBuilder build(program);
  const Initializer random{Fill::normal, 0.3};
  const auto weight = [&](const char* name, Shape shape) {
    return build.persistent(name, std::move(shape), Role::weight, random);
  };
  const auto norm = [&](const std::string& name, ValueId x, std::int64_t count) {
    const auto scale =
        build.persistent(name + ".scale", {channels}, Role::weight, {Fill::constant, 1});
    const auto shift = build.persistent(name + ".shift", {channels}, Role::weight, {});
    const auto mean =
        build.persistent(name + ".mean", {channels}, Role::statistic, {Fill::constant, 0});
    const auto variance =
        build.persistent(name + ".variance", {channels}, Role::statistic, {Fill::constant, 1});
    const auto y = build.emit("batch_norm", name, {x, scale, shift}, {{"epsilon", 1e-5}});
    build.emit("update_statistics", name + ".statistics", {mean, variance, y[1], y[2]},
               {{"momentum", 0.1}, {"count", count}}, {mean, variance});
    return y[0];
  };
  const Attributes same = {{"strides", Shape{1, 1}}, {"padding", Shape{1, 1, 1, 1}}};
  const Attributes strided = {{"strides", Shape{2, 2}}, {"padding", Shape{1, 1, 1, 1}}};

  const auto images = build.input("images", {batch, 3, height, width}, DType::f32);
  const auto labels = build.input("labels", {batch}, DType::s32);
  auto x = build.emit_one("convolution", "stem",
                          {images, weight("stem.weight", {channels, 3, 3, 3})}, same);
  x = norm("stem.norm", x, batch * height * width);
  x = build.emit_one("relu", "stem.relu", {x});
  x = build
          .emit("max_pool", "pool", {x},
                {{"kernel", Shape{3, 3}}, {"strides", Shape{2, 2}}, {"padding", Shape{1, 1, 1, 1}}})
          .front();
  auto y = build.emit_one("convolution", "block.conv",
                          {x, weight("block.weight", {channels, channels, 3, 3})}, same);
  y = norm("block.norm", y, batch * ((height + 1) / 2) * ((width + 1) / 2));
  y = build.emit_one("add", "block.add", {y, x});
  y = build.emit_one("relu", "block.relu", {y});
  y = build.emit_one("convolution", "down", {y, weight("down.weight", {channels, channels, 3, 3})},
                     strided);
  y = build.emit_one("global_average_pool", "average", {y});
  y = build.emit_one("linear", "head",
                     {y, weight("head.weight", {4, channels}), weight("head.bias", {4})});
  const auto loss = build.emit("softmax_cross_entropy", "loss", {y, labels});
  const auto count = build.emit_one("count_correct", "correct", {y, labels});
  program.loss = loss[0];
  program.results = {loss[0], count};
  return program;
}

// Adds SGD updates as an optimizer strategy would.
inline Program with_sgd(Program program) {
  const auto gradients = program.gradients;
  ProgramBuilder build(program, Phase::update);
  for (const auto& [weight, gradient] : gradients) {
    const Value trained = program.value(weight);
    const auto velocity = build.persistent(trained.name + ".velocity", trained.shape,
                                           Role::optimizer_state, {Fill::constant, 0});
    build.emit("sgd_momentum", trained.name + ".update", {weight, gradient, velocity},
               {{"learning_rate", 0.05}, {"momentum", 0.9}, {"weight_decay", 1e-4}},
               {weight, velocity});
  }
  return program;
}

}  // namespace headroom::testing
