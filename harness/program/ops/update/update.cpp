#include "harness/program/ops/rules.h"

namespace headroom::update_op {
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

std::vector<Value> infer_adam(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 5, "takes weight, gradient, mean, square and steps, not {} operands",
          inputs.size());
  const std::size_t rank = inputs[0].shape.size();
  require_operands(
      inputs,
      {{"weight", rank}, {"gradient", rank}, {"mean", rank}, {"square", rank}, {"steps", 1}});
  for (const std::size_t i : {1, 2, 3}) require_shape(inputs[i], "a state", inputs[0].shape);
  require_shape(inputs[4], "steps", {1});
  require_mutates(op, {0, 2, 3});
  for (const char* rate : {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay"})
    op.number(rate);
  return {};
}

std::vector<Value> infer_count(const Op& op, std::span<const Value> inputs) {
  require_operands(inputs, {{"steps", 1}});
  require_shape(inputs[0], "steps", {1});
  require_mutates(op, {0});
  return {};
}

std::vector<Value> infer_accumulate(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 2 || inputs.size() == 3,
          "takes sum, gradient and optionally weight, not {} operands", inputs.size());
  const std::size_t rank = inputs[0].shape.size();
  require_operands(inputs.first(2), {{"sum", rank}, {"gradient", rank}});
  if (inputs.size() == 3) require_shape(inputs[2], "weight", {1});
  require_shape(inputs[1], "gradient", inputs[0].shape);
  require_mutates(op, {0});
  op.number("scale");
  op.integer("start");
  return {};
}

const bool accumulate = Registry<OpDefinition>::instance().add(
    {.name = "accumulate",
     .summary =
         "sum, gradient, optionally weight[1]: sum = scale weight gradient where start is 1, "
         "else sum + scale weight gradient",
     .infer = infer_accumulate});

std::vector<Value> infer_divide(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 2, "takes x and divisor, not {} operands", inputs.size());
  require_operands(inputs, {{"x", inputs[0].shape.size()}, {"divisor", 1}});
  require_shape(inputs[1], "divisor", {1});
  require_mutates(op, {0});
  return {};
}

const bool divide = Registry<OpDefinition>::instance().add(
    {.name = "divide",
     .summary = "x, divisor[1]: x = x / divisor; unchanged where divisor is 0",
     .infer = infer_divide});

const bool adam = Registry<OpDefinition>::instance().add(
    {.name = "adam",
     .summary = "weight, gradient, mean, square, steps[1] (this one included): m = beta1 m + "
                "(1 - beta1) g, s = beta2 s + (1 - beta2) g^2, w = w - learning_rate "
                "(m / (1 - beta1^steps) / (sqrt(s / (1 - beta2^steps)) + epsilon) + "
                "weight_decay w)",
     .infer = infer_adam});

const bool count = Registry<OpDefinition>::instance().add(
    {.name = "count_step", .summary = "steps[1] = steps + 1", .infer = infer_count});

const bool sgd = Registry<OpDefinition>::instance().add(
    {.name = "sgd_momentum",
     .summary = "weight, gradient, velocity: v = momentum v + (g + weight_decay w), "
                "w = w - learning_rate v",
     .infer = infer_sgd});

}  // namespace
}  // namespace headroom::update_op
