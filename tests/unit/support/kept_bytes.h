// Bytes that a Program's forward pass keeps for its backward pass.
#pragma once

#include <string>
#include <vector>

#include "harness/program/program.h"

namespace headroom::testing {

// Bytes that the ops named after `layer` make in the forward pass and the backward pass reads, as
// if trained in 16 bits: masks stay one byte an element, everything else takes two.
inline double kept_by_layer(const Program& program, const std::string& layer) {
  std::vector<bool> made(program.values.size()), kept(program.values.size());
  for (const Op& op : program.ops) {
    if (op.phase == Phase::forward && op.name.starts_with(layer))
      for (const ValueId id : op.outputs) made[id] = true;
    if (op.phase == Phase::backward)
      for (const ValueId id : op.inputs) kept[id] = kept[id] || made[id];
  }
  double bytes = 0;
  for (ValueId id = 0; id < program.values.size(); ++id) {
    if (!kept[id]) continue;
    const Value& value = program.value(id);
    const auto count = static_cast<double>(element_count(value.shape));
    bytes += value.dtype == DType::u8 ? count : 2 * count;
  }
  return bytes;
}

}  // namespace headroom::testing
