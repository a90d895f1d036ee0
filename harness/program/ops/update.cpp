#include "harness/program/ops/rules.h"

namespace headroom {
namespace {

using namespace rules;

std::vector<Value> infer_sgd(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 3, "takes weight, gradient and velocity, not {} operands",
          inputs.size());
  const std::size_t rank = inputs[0].shape.size();
  require_operands(inputs, {{"weight", rank}, {"gradient", rank}, {"velocity", rank}});
  require_shape(inputs[1], "gradient", inputs[0].shape);
  require_shape(inputs[2], "velocity", inputs[0].shape);
  require_mutates(op, {0, 2});
  for (const char* rate : {"learning_rate", "momentum", "weight_decay"}) op.number(rate);
  return {};
}

const bool sgd = Registry<OpDefinition>::instance().add(
    {.name = "sgd_momentum",
     .summary = "weight, gradient, velocity: v = momentum v + (g + weight_decay w), "
                "w = w - learning_rate v",
     .infer = infer_sgd});

}  // namespace
}  // namespace headroom
