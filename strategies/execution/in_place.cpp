#include "strategies/execution/in_place.h"

#include <algorithm>

#include "harness/program/in_place.h"

namespace headroom::execution {
namespace {

bool can_take_over(const Program& program, const Op& op, const InPlace& places,
                   const std::vector<ValueId>& freed) {
  const ValueId input = op.inputs[places.input];
  const Value& from = program.value(input);
  const Value& to = program.value(op.outputs[places.output]);
  return std::count(op.inputs.begin(), op.inputs.end(), input) == 1 &&
         std::find(freed.begin(), freed.end(), input) != freed.end() && from.bytes == to.bytes &&
         from.dtype == to.dtype && from.layout == to.layout;
}

}  // namespace

Program reuse_operands(Program lowered) {
  const auto frees = last_uses(lowered);
  for (std::size_t index = 0; index < lowered.ops.size(); ++index) {
    Op& op = lowered.ops[index];
    const auto& choices = in_place_choices(op.kind);
    const auto chosen = std::find_if(choices.begin(), choices.end(), [&](const InPlace& places) {
      return can_take_over(lowered, op, places, frees[index]);
    });
    if (chosen != choices.end()) put_in_place(op, *chosen);
  }
  return lowered;
}

}  // namespace headroom::execution
