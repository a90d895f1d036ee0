#include "workloads/gan_layers.h"

#include <utility>

namespace headroom {
namespace {

Attributes sliding(const Window& window) {
  return {{"strides", Shape{window.stride, window.stride}},
          {"padding", Shape{window.padding, window.padding, window.padding, window.padding}}};
}

}  // namespace

ValueId GanLayers::emit(const std::string& kind, const std::string& name,
                        std::vector<ValueId> inputs, Attributes attributes) {
  return builder_.emit_one(kind, prefix_ + name, std::move(inputs), std::move(attributes));
}

ValueId GanLayers::convolution(const std::string& name, ValueId x, std::int64_t outputs,
                               Window window, double deviation) {
  const ValueId weight =
      persistent(name + ".weight", {outputs, shape(x)[1], window.size, window.size}, Role::weight,
                 {Fill::normal, deviation});
  return emit("convolution", name, {x, weight}, sliding(window));
}

ValueId GanLayers::transposed_convolution(const std::string& name, ValueId x, std::int64_t outputs,
                                          Window window, double deviation) {
  const ValueId weight =
      persistent(name + ".weight", {shape(x)[1], outputs, window.size, window.size}, Role::weight,
                 {Fill::normal, deviation});
  return emit("transposed_convolution", name, {x, weight}, sliding(window));
}

ValueId GanLayers::batch_norm(const std::string& name, ValueId x) {
  const Shape sizes = shape(x);
  const auto per_channel = [&](const char* suffix, Role role, double value) {
    return persistent(name + suffix, {sizes[1]}, role, {Fill::constant, value});
  };
  const ValueId scale = per_channel(".scale", Role::weight, 1);
  const ValueId shift = per_channel(".shift", Role::weight, 0);
  const ValueId mean = per_channel(".running_mean", Role::statistic, 0);
  const ValueId variance = per_channel(".running_variance", Role::statistic, 1);
  const Attributes epsilon = {{"epsilon", 1e-5}};
  if (phase_ == Phase::evaluate)
    return emit("batch_norm_inference", name, {x, scale, shift, mean, variance}, epsilon);
  const auto y = builder_.emit("batch_norm", prefix_ + name, {x, scale, shift}, epsilon);
  builder_.emit("update_statistics", prefix_ + name + ".statistics", {mean, variance, y[1], y[2]},
                {{"momentum", 0.1}, {"count", sizes[0] * sizes[2] * sizes[3]}}, {mean, variance});
  return y[0];
}

ValueId GanLayers::upsample(const std::string& name, ValueId x, std::int64_t factor) {
  return emit("upsample", name, {x}, {{"factor", factor}, {"scale", 1.0}});
}

ValueId GanLayers::sum_pool(const std::string& name, ValueId x, std::int64_t factor, double scale) {
  return emit("sum_pool", name, {x}, {{"factor", factor}, {"scale", scale}});
}

void GanLayers::freeze(const std::string& network) {
  for (const auto& [name, id] : persistent_)
    if (name.starts_with(network) && builder_.program().value(id).role == Role::weight)
      builder_.program().frozen.push_back(id);
}

ValueId GanLayers::persistent(const std::string& name, Shape shape, Role role,
                              Initializer initializer) {
  const auto found = persistent_.find(name);
  if (found != persistent_.end()) return found->second;
  return persistent_[name] = builder_.persistent(name, std::move(shape), role, initializer);
}

}  // namespace headroom
