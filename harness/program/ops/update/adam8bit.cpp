// Adam with 8-bit states (Dettmers et al. 2022).
#include "harness/program/ops/rules.h"

namespace headroom::adam8bit_op {
namespace {

using namespace rules;

std::vector<Value> infer_adam8bit(const Op& op, std::span<const Value> inputs) {
  require(!inputs.empty(), "takes operands, not none");
  const std::size_t rank = inputs[0].shape.size();
  require_operands(inputs, {{"weight", rank},
                            {"gradient", rank},
                            {"mean_codes", 1, DType::u8},
                            {"mean_scales", 1},
                            {"square_codes", 1, DType::u8},
                            {"square_scales", 1},
                            {"steps", 1}});
  require(op.integer("block") > 0 && op.integer("block") <= 4096,
          "block must be 1 to 4096, which fit on a stack, not {}", op.integer("block"));
  const std::int64_t elements = element_count(inputs[0].shape);
  const std::int64_t blocks = (elements + op.integer("block") - 1) / op.integer("block");
  require_shape(inputs[1], "gradient", inputs[0].shape);
  for (const std::size_t i : {2, 4}) require_shape(inputs[i], "codes", {elements});
  for (const std::size_t i : {3, 5}) require_shape(inputs[i], "scales", {blocks});
  require_shape(inputs[6], "steps", {1});
  require_mutates(op, {0, 2, 3, 4, 5});
  for (const char* rate : {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay"})
    op.number(rate);
  return {};
}

const bool adam8bit = Registry<OpDefinition>::instance().add(
    {.name = "adam8bit",
     .summary =
         "weight, gradient, mean and square each as codes[n] and scales[n / block], steps[1]: "
         "as adam, each state the number its code stands for (dynamic 8-bit numbers, signed "
         "for means; codes count them in ascending order) times the scale of its block, in "
         "row-major order; after the step scales are the largest magnitudes of blocks and "
         "codes the nearest",
     .infer = infer_adam8bit});

}  // namespace
}  // namespace headroom::adam8bit_op
