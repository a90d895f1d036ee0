#include <algorithm>

#include "harness/program/in_place.h"
#include "harness/program/offload.h"
#include "harness/program/program.h"

namespace headroom {

std::vector<std::vector<ValueId>> last_uses(const Program& program) {
  std::vector<std::vector<ValueId>> frees(program.ops.size());
  std::vector<bool> seen(program.values.size());
  for (ValueId id = 0; id < program.values.size(); ++id) seen[id] = program.value(id).persistent;
  for (const ValueId id : program.results) seen[id] = true;

  for (std::size_t index = program.ops.size(); index-- > 0;) {
    const Op& op = program.ops[index];
    const auto visit = [&](ValueId id) {
      if (id == kNoValue || seen[id]) return;
      seen[id] = true;
      frees[index].push_back(id);
    };
    if (const auto places = in_place(op)) seen[op.inputs[places->input]] = true;  // lives on
    std::for_each(op.inputs.begin(), op.inputs.end(), visit);
    std::for_each(op.outputs.begin(), op.outputs.end(), visit);
    visit(op.workspace);
  }
  if (!program.ops.empty())
    for (const ValueId id : program.inputs)
      if (!seen[id]) frees.front().push_back(id);
  return frees;
}

Bytes peak_live_bytes(const Program& lowered) {
  Bytes live = 0;
  for (const Value& value : lowered.values) live += value.persistent ? value.bytes : 0;
  for (const ValueId id : lowered.inputs) live += lowered.value(id).bytes;
  Bytes peak = live;
  const auto frees = last_uses(lowered);
  const std::vector<bool> on_host = kept_on_host(lowered);
  const auto bytes_of = [&](ValueId id) { return on_host[id] ? 0 : lowered.value(id).bytes; };
  for (std::size_t index = 0; index < lowered.ops.size(); ++index) {
    const Op& op = lowered.ops[index];
    for (const ValueId id : op.outputs) live += bytes_of(id);
    if (const auto places = in_place(op)) live -= bytes_of(op.outputs[places->output]);
    if (op.workspace != kNoValue) live += bytes_of(op.workspace);
    peak = std::max(peak, live);
    for (const ValueId id : frees[index]) live -= bytes_of(id);
  }
  return peak;
}

Bytes peak_live_bytes(std::span<const Program* const> sharing) {
  std::map<std::string, Bytes> persistent;
  Bytes most_transient = 0;
  for (const Program* program : sharing) {
    Bytes own = 0;
    for (const Value& value : program->values) {
      if (!value.persistent) continue;
      persistent[value.name] = value.bytes;
      own += value.bytes;
    }
    most_transient = std::max(most_transient, peak_live_bytes(*program) - own);
  }
  Bytes sum = most_transient;
  for (const auto& [name, bytes] : persistent) sum += bytes;
  return sum;
}

}  // namespace headroom
