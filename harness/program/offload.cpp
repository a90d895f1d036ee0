#include "harness/program/offload.h"

#include <algorithm>

namespace headroom {

bool is_transfer(const Op& op) { return op.kind == "copy_out" || op.kind == "copy_in"; }

std::vector<bool> kept_on_host(const Program& program) {
  std::vector<bool> on_host(program.values.size());
  for (const Op& op : program.ops)
    if (op.kind == "copy_out") on_host[op.outputs.front()] = true;
  return on_host;
}

Offloaded count_offloaded(const Program& lowered) {
  Offloaded result;
  const std::vector<bool> on_host = kept_on_host(lowered);
  const auto frees = last_uses(lowered);
  Bytes kept = 0;
  for (std::size_t index = 0; index < lowered.ops.size(); ++index) {
    const Op& op = lowered.ops[index];
    if (op.kind == "copy_out") {
      const Bytes bytes = lowered.value(op.outputs.front()).bytes;
      result.moved += bytes;
      result.peak = std::max(result.peak, kept += bytes);
    }
    for (const ValueId id : frees[index])
      if (on_host[id]) kept -= lowered.value(id).bytes;
  }
  return result;
}

}  // namespace headroom
