#include "harness/program/conditional.h"

#include "harness/base/error.h"

namespace headroom {
namespace {

constexpr const char* kMark = "unless_last_operand";

}  // namespace

void do_unless(Op& op, ValueId flag) {
  if (!op.outputs.empty())
    throw Error(op.name + " (" + op.kind + ") cannot be left out: others read its results");
  if (is_conditional(op)) throw Error(op.name + " (" + op.kind + ") has a condition already");
  op.inputs.push_back(flag);
  op.attributes[kMark] = std::int64_t{1};
}

bool is_conditional(const Op& op) { return op.attributes.contains(kMark); }

Op unconditional(Op op) {
  if (!is_conditional(op)) return op;
  op.inputs.pop_back();
  op.attributes.erase(kMark);
  return op;
}

}  // namespace headroom
