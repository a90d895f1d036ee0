#include "harness/program/conditional.h"

#include "harness/base/error.h"

namespace headroom {
namespace {

constexpr const char* kConditional = "unless_last_operand";

}  // namespace

void do_unless(Op& op, ValueId flag) {
  if (!op.outputs.empty())
    throw Error(op.name + " (" + op.kind + ") cannot be skipped: other ops read its results");
  if (is_conditional(op)) throw Error(op.name + " (" + op.kind + ") has a condition already");
  op.inputs.push_back(flag);
  op.attributes[kConditional] = std::int64_t{1};
}

bool is_conditional(const Op& op) { return op.attributes.contains(kConditional); }

Op unconditional(Op op) {
  if (!is_conditional(op)) return op;
  op.inputs.pop_back();
  op.attributes.erase(kConditional);
  return op;
}

}  // namespace headroom
