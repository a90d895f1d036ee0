#include "strategies/checkpointing/held.h"

#include <algorithm>

#include "harness/program/offload.h"
#include "harness/program/recomputed.h"

namespace headroom::checkpointing {
namespace {

bool is_held_from(const Op& op) {
  if (is_transfer(op)) return op.kind == "copy_in";
  return op.phase == Phase::forward || is_recomputed(op);
}

}  // namespace

Bytes plain_bytes(const Value& value) {
  return static_cast<Bytes>(element_count(value.shape)) * size_of(value.dtype);
}

Bytes held_bytes(const Program& program) {
  constexpr std::size_t kNever = ~std::size_t{0};
  std::vector<std::size_t> last_read(program.values.size(), kNever);
  std::vector<bool> made_again(program.values.size());
  for (const Op& op : program.ops)
    for (const ValueId id : op.outputs) made_again[id] = is_recomputed(op);
  for (std::size_t index = 0; index < program.ops.size(); ++index) {
    const Op& op = program.ops[index];
    if (op.phase != Phase::backward) continue;
    for (const ValueId id : op.inputs)
      if (id != kNoValue && !(is_recomputed(op) && made_again[id])) last_read[id] = index;
  }
  Bytes held = 0, peak = 0;
  std::vector<bool> is_held(program.values.size());
  for (std::size_t index = 0; index < program.ops.size(); ++index) {
    const Op& op = program.ops[index];
    for (const ValueId id : op.outputs) {
      if (last_read[id] == kNever || !is_held_from(op)) continue;
      is_held[id] = true;
      held += plain_bytes(program.value(id));
    }
    peak = std::max(peak, held);
    for (const ValueId id : op.inputs) {
      if (id == kNoValue || !is_held[id] || last_read[id] != index) continue;
      is_held[id] = false;
      held -= plain_bytes(program.value(id));
    }
  }
  return peak;
}

}  // namespace headroom::checkpointing
