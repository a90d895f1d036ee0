#include "harness/program/recomputed.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr const char* kRecomputed = "recomputed";

// Removes values that no op uses and renumbers the rest. Persistent values and inputs stay.
void drop_unknown_values(Program& program) {
  std::vector<bool> known(program.values.size());
  const auto know = [&](ValueId id) {
    if (id != kNoValue) known[id] = true;
  };
  for (const Op& op : program.ops) {
    std::for_each(op.inputs.begin(), op.inputs.end(), know);
    std::for_each(op.outputs.begin(), op.outputs.end(), know);
  }
  std::for_each(program.inputs.begin(), program.inputs.end(), know);
  std::vector<ValueId> number(program.values.size(), kNoValue);
  std::vector<Value> values;
  for (ValueId id = 0; id < program.values.size(); ++id) {
    if (!known[id] && !program.value(id).persistent) continue;
    number[id] = static_cast<ValueId>(values.size());
    values.push_back(std::move(program.values[id]));
  }
  program.values = std::move(values);
  const auto renumber = [&](ValueId& id) {
    if (id != kNoValue) id = number[id];
  };
  for (Op& op : program.ops)
    for (auto* ids : {&op.inputs, &op.outputs, &op.mutates})
      std::for_each(ids->begin(), ids->end(), renumber);
  for (auto* ids : {&program.inputs, &program.results, &program.frozen})
    std::for_each(ids->begin(), ids->end(), renumber);
  renumber(program.loss);
  for (auto& [weight, gradient] : program.gradients) {
    renumber(weight);
    renumber(gradient);
  }
}

}  // namespace

Op& repeat(Program& program, const Op& op) {
  Op again = op;
  again.name += ".recompute";
  again.phase = Phase::backward;
  again.attributes[kRecomputed] = std::int64_t{1};
  for (ValueId& id : again.outputs) {
    Value made = program.value(id);
    made.name += ".recompute";
    id = static_cast<ValueId>(program.values.size());
    program.values.push_back(std::move(made));
  }
  return program.ops.emplace_back(std::move(again));
}

bool is_recomputed(const Op& op) { return op.attributes.contains(kRecomputed); }

std::int64_t recomputed_ops(const Program& program) {
  return std::count_if(program.ops.begin(), program.ops.end(), is_recomputed);
}

Program without_unread_repetitions(Program program) {
  std::vector<bool> read(program.values.size());
  for (const ValueId id : program.results) read[id] = true;
  std::vector<Op> kept;
  for (std::size_t index = program.ops.size(); index-- > 0;) {
    Op& op = program.ops[index];
    const bool needed =
        std::any_of(op.outputs.begin(), op.outputs.end(), [&](ValueId id) { return read[id]; });
    if (is_recomputed(op) && !needed) continue;
    for (const ValueId id : op.inputs)
      if (id != kNoValue) read[id] = true;
    kept.push_back(std::move(op));
  }
  std::reverse(kept.begin(), kept.end());
  program.ops = std::move(kept);
  drop_unknown_values(program);
  return program;
}

}  // namespace headroom
