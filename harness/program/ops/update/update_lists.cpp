// The rules of update.cpp for many weights at once, whole (fused_…) or in parts (foreach_…).
#include "harness/program/update_lists.h"
#include "harness/program/ops/rules.h"

namespace headroom::update_lists_op {
namespace {

using namespace rules;

// The operands of a group have equal shapes; a kind that changes nothing has one result per group.
std::vector<Value> infer_list(const Op& op, std::span<const Value> inputs) {
  const OperandGroups groups = operand_groups(op.kind);
  const std::size_t count = groups.count(op);
  require(count > 0 && inputs.size() == count * groups.operands + groups.shared,
          "takes groups of {} operands and {} that all share, not {}", groups.operands,
          groups.shared, inputs.size());
  if (groups.shared == 1) require_operands(inputs.last(1), {{"steps", 1}});
  if (groups.shared == 1) require_shape(inputs.back(), "steps", {1});
  std::vector<ValueId> mutates;
  std::vector<Value> results;
  for (std::size_t first = 0; first < count * groups.operands; first += groups.operands) {
    for (const Value& value : inputs.subspan(first, groups.operands)) {
      require(value.dtype == DType::f32, "computes in f32, but '{}' is {}", value.name,
              to_string(value.dtype));
      require_shape(value, "an operand", inputs[first].shape);
    }
    for (const std::size_t place : groups.mutates) mutates.push_back(op.inputs[first + place]);
    if (groups.mutates.empty()) results.push_back(made(inputs[first].shape, Role::workspace));
  }
  require(op.mutates == mutates, "mutates {} of its inputs, which the op does not state",
          mutates.size());
  return results;
}

std::vector<Value> infer_adam(const Op& op, std::span<const Value> inputs) {
  for (const char* rate : {"beta1", "beta2", "epsilon", "learning_rate", "weight_decay"})
    op.number(rate);
  return infer_list(op, inputs);
}

std::vector<Value> infer_sgd(const Op& op, std::span<const Value> inputs) {
  for (const char* rate : {"learning_rate", "momentum", "weight_decay"}) op.number(rate);
  return infer_list(op, inputs);
}

const bool moments = Registry<OpDefinition>::instance().add(
    {.name = "foreach_adam_moments",
     .summary = "gradient, mean, square of each weight: m = beta1 m + (1 - beta1) g, "
                "s = beta2 s + (1 - beta2) g^2",
     .infer = infer_adam});

const bool roots = Registry<OpDefinition>::instance().add(
    {.name = "foreach_adam_roots",
     .summary = "square of each weight, steps[1] -> sqrt(s / (1 - beta2^steps)) of each",
     .infer = infer_adam});

const bool weights = Registry<OpDefinition>::instance().add(
    {.name = "foreach_adam_weights",
     .summary = "weight, mean, root of each weight, steps[1]: w = w - learning_rate "
                "(m / (1 - beta1^steps) / (root + epsilon) + weight_decay w)",
     .infer = infer_adam});

const bool decay = Registry<OpDefinition>::instance().add(
    {.name = "foreach_weight_decay",
     .summary = "weight, gradient of each weight -> g + weight_decay w of each",
     .infer = infer_sgd});

const bool fused_adam = Registry<OpDefinition>::instance().add(
    {.name = "fused_adam",
     .summary = "weight, gradient, mean, square of each weight, steps[1]: adam of all of them",
     .infer = infer_adam});

const bool fused_sgd = Registry<OpDefinition>::instance().add(
    {.name = "fused_sgd_momentum",
     .summary = "weight, gradient, velocity of each weight: sgd_momentum of all of them",
     .infer = infer_sgd});

}  // namespace
}  // namespace headroom::update_lists_op
