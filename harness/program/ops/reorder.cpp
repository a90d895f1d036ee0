#include "harness/program/ops/rules.h"

namespace headroom::reorder_op {
namespace {

std::vector<Value> infer_reorder(const Op&, std::span<const Value> inputs) {
  rules::require(inputs.size() == 1, "takes one operand, not {}", inputs.size());
  // A copy of a persistent value is scratch: it does not count as a second weight.
  const Role role = inputs[0].persistent ? Role::workspace : inputs[0].role;
  return {rules::made(inputs[0].shape, role, inputs[0].dtype)};
}

const bool reorder = Registry<OpDefinition>::instance().add(
    {.name = "reorder",
     .summary = "x -> y, the same tensor in another layout; only lower() inserts it",
     .infer = infer_reorder});

}  // namespace
}  // namespace headroom::reorder_op
