// Ops that change many weights at once. Their operands come in equal groups, one per weight,
// followed by the operands that all groups share. For code that takes such an op apart.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "harness/program/op.h"

namespace headroom {

struct OperandGroups {
  std::size_t operands = 0;               // per group; 0: the kind is not such an op
  std::vector<std::size_t> mutates = {};  // per group
  std::size_t shared = 0;

  // A condition (conditional.h) may follow the shared operands. The division discards it, because
  // groups that change values have several operands.
  std::size_t count(const Op& op) const { return (op.inputs.size() - shared) / operands; }
};
OperandGroups operand_groups(std::string_view kind);

}  // namespace headroom
