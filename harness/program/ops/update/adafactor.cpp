// The update of Shazeer and Stern 2018, "Adafactor", algorithms 4 and 5.
#include "harness/program/ops/rules.h"

namespace headroom::adafactor_op {
namespace {

using namespace rules;

std::vector<Value> infer_adafactor(const Op& op, std::span<const Value> inputs) {
  require(inputs.size() == 4 || inputs.size() == 5,
          "takes weight, gradient, square (or row_square and column_square) and steps, not {} "
          "operands",
          inputs.size());
  const bool factored = inputs.size() == 5;
  const Shape& shape = inputs[0].shape;
  require(factored ? shape.size() >= 2 : shape.size() == 1,
          "squares are factored where the weight has rows and columns, and only there: '{}' is {}",
          inputs[0].name, to_string(shape));
  require_operands(inputs.first(2), {{"weight", shape.size()}, {"gradient", shape.size()}});
  require_operands(inputs.last(1), {{"steps", 1}});
  require_shape(inputs[1], "gradient", shape);
  require_shape(inputs.back(), "steps", {1});
  if (factored) {
    require_operands(inputs.subspan(2, 2), {{"row_square", 1}, {"column_square", 1}});
    require_shape(inputs[2], "row_square", {shape[0]});
    require_shape(inputs[3], "column_square", {element_count(shape) / shape[0]});
    require_mutates(op, {0, 2, 3});
  } else {
    require_shape(inputs[2], "square", shape);
    require_mutates(op, {0, 2});
  }
  for (const char* number :
       {"clip_threshold", "decay_rate", "epsilon1", "epsilon2", "learning_rate"})
    op.number(number);
  op.integer("relative");
  return {};
}

const bool adafactor = Registry<OpDefinition>::instance().add(
    {.name = "adafactor",
     .summary =
         "weight, gradient, row_square[rows] and column_square[columns] (the weight taken as its "
         "first dimension by all others; square[n] of a vector), steps[1] (this one included): "
         "b = 1 - steps^-decay_rate; r, c = b r + (1 - b) mean of g^2 + epsilon1 over columns, "
         "over rows; u = g / sqrt(r c / mean(r)), divided by max(1, rms(u) / clip_threshold); "
         "w = w - a u with a = learning_rate or, where relative is 1, "
         "max(epsilon2, rms(w)) min(0.01, 1 / sqrt(steps))",
     .infer = infer_adafactor});

}  // namespace
}  // namespace headroom::adafactor_op
