// Loss scaling (Micikevicius et al. 2018): gradients are checked before they change anything, and
// the scale is adjusted to the outcome.
#include "harness/program/ops/rules.h"

namespace headroom::loss_scale_op {
namespace {

using namespace rules;

std::vector<Value> infer_check(const Op&, std::span<const Value> inputs) {
  require(inputs.size() >= 2, "takes scale and at least one gradient, not {} operands",
          inputs.size());
  require_operands(inputs.first(1), {{"scale", 1}});
  require_shape(inputs[0], "scale", {1});
  for (const Value& gradient : inputs.subspan(1))
    require(gradient.dtype == DType::f32, "gradients must be f32, but '{}' is {}", gradient.name,
            to_string(gradient.dtype));
  return {made({1}, Role::workspace), made({1}, Role::workspace)};
}

std::vector<Value> infer_adjust(const Op& op, std::span<const Value> inputs) {
  require_operands(inputs, {{"overflow", 1}, {"scale", 1}, {"good_steps", 1}, {"skipped", 1}});
  for (const Value& value : inputs) require_shape(value, "a number", {1});
  require_mutates(op, {1, 2, 3});
  for (const char* factor : {"growth", "backoff"})
    require(op.number(factor) > 0, "{} must be positive", factor);
  require(op.integer("growth_interval") > 0, "growth_interval must be positive");
  return {};
}

const bool check = Registry<OpDefinition>::instance().add(
    {.name = "check_gradients",
     .summary = "scale[1], gradients … -> overflow[1] (1 where any element is infinite or not a "
                "number, else 0), inverse[1] = 1 / scale",
     .infer = infer_check});

const bool adjust = Registry<OpDefinition>::instance().add(
    {.name = "adjust_loss_scale",
     .summary =
         "overflow[1], scale[1], good_steps[1], skipped[1]: where overflow is not 0, scale = "
         "backoff scale, good_steps = 0, skipped = skipped + 1; else good_steps = good_steps "
         "+ 1, and every growth_interval of them scale = growth scale, good_steps = 0",
     .infer = infer_adjust});

}  // namespace
}  // namespace headroom::loss_scale_op
