// Random small networks with merging branches and values with several readers or none, on images or
// on rows of a text.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "harness/program/program.h"

namespace headroom::testing {

class BranchingNet {
 public:
  explicit BranchingNet(std::mt19937_64& random)
      : random_(random), images_(between(0, 1) == 1), width_(between(2, 20)) {}

  Program make() {
    batch_ = between(2, 5);
    key_ = build_.input("key", {2}, DType::s32);
    made_ = {build_.input("x", images_ ? Shape{batch_, width_, 5, 4} : Shape{batch_ * 3, width_},
                          DType::f32)};
    const ValueId labels = build_.input("labels", {images_ ? batch_ : batch_ * 3}, DType::s32);
    const auto layers = between(3, 9);
    for (int layer = 0; layer < layers; ++layer) {
      name_ = "layer." + std::to_string(layer);
      const ValueId x = images_ ? convolved(any()) : multiplied(any(), width_);
      made_.push_back(x);
      for (auto more = between(0, 3); more > 0; --more) {
        name_ += ".next";
        made_.push_back(nonlinear(any()));
      }
    }
    name_ = "head";
    ValueId x = made_.back();
    if (images_) x = build_.emit_one("global_average_pool", "head.average", {x});
    const auto loss =
        build_.emit("softmax_cross_entropy", "loss", {multiplied(x, kClasses), labels});
    program_.loss = loss[0];
    program_.results = {loss[0]};
    return std::move(program_);
  }

  static constexpr std::int64_t kClasses = 3;

 private:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  // A value made so far, usually a recent one.
  ValueId any() {
    const auto last = static_cast<std::int64_t>(made_.size()) - 1;
    return made_[static_cast<std::size_t>(between(0, 2) > 0 ? last : between(0, last))];
  }
  ValueId weight(const std::string& name, Shape shape) {
    return build_.persistent(name_ + name, std::move(shape), Role::weight, {Fill::normal, 0.3});
  }
  ValueId multiplied(ValueId x, std::int64_t outputs) {
    return build_.emit_one("linear", name_ + ".linear",
                           {x, weight(".weight", {outputs, width_}), weight(".bias", {outputs})});
  }
  ValueId convolved(ValueId x) {
    return build_.emit_one("convolution", name_ + ".conv",
                           {x, weight(".weight", {width_, width_, 3, 3})},
                           {{"strides", Shape{1, 1}}, {"padding", Shape{1, 1, 1, 1}}});
  }
  ValueId normalised(ValueId x) {
    const ValueId scale =
        build_.persistent(name_ + ".scale", {width_}, Role::weight, {Fill::constant, 1});
    const ValueId shift = weight(".shift", {width_});
    if (!images_)
      return build_.emit("layer_norm", name_ + ".norm", {x, scale, shift}, {{"epsilon", 1e-5}})[0];
    const auto y =
        build_.emit("batch_norm", name_ + ".norm", {x, scale, shift}, {{"epsilon", 1e-5}});
    const auto running = [&](const char* name, double start) {
      return build_.persistent(name_ + name, {width_}, Role::statistic, {Fill::constant, start});
    };
    const ValueId mean = running(".mean", 0), variance = running(".variance", 1);
    build_.emit("update_statistics", name_ + ".statistics", {mean, variance, y[1], y[2]},
                {{"momentum", 0.1}, {"count", batch_ * 20}}, {mean, variance});
    return y[0];
  }
  ValueId nonlinear(ValueId x) {
    switch (between(0, 6)) {
      case 0:
        return build_.emit_one("add", name_ + ".add", {x, any()});
      case 1:
        return normalised(x);
      case 2:
        return build_.emit_one("leaky_relu", name_ + ".leaky", {x}, {{"slope", 0.2}});
      case 3:
        return build_.emit("dropout", name_ + ".dropout", {x, key_},
                           {{"rate", 0.3}, {"stream", static_cast<std::int64_t>(made_.size())}})[0];
      default:
        static constexpr const char* kinds[] = {"relu", "gelu", "tanh"};
        return build_.emit_one(kinds[between(0, 2)], name_ + ".activation", {x});
    }
  }

  std::mt19937_64& random_;
  bool images_;
  std::int64_t width_;
  std::int64_t batch_ = 0;
  Program program_{.name = "train"};
  ProgramBuilder build_{program_};
  ValueId key_ = kNoValue;
  std::vector<ValueId> made_;
  std::string name_;
};

}  // namespace headroom::testing
