// Ops that change many weights at once: operands come in groups, one for each weight and alike, and
// what all of them share comes last. For whoever takes such an op apart.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "harness/program/op.h"

namespace headroom {

struct OperandGroups {
  std::size_t operands = 0;               // of each group; 0: no such kind
  std::vector<std::size_t> mutates = {};  // of each group
  std::size_t shared = 0;

  // A condition (conditional.h) may stand behind what is shared: groups that change have several
  // operands.
  std::size_t count(const Op& op) const { return (op.inputs.size() - shared) / operands; }
};
OperandGroups operand_groups(std::string_view kind);

}  // namespace headroom
