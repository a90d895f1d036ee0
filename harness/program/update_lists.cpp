#include "harness/program/update_lists.h"

#include <map>

namespace headroom {

OperandGroups operand_groups(std::string_view kind) {
  static const std::map<std::string_view, OperandGroups> kinds = {
      {"foreach_adam_moments", {.operands = 3, .mutates = {1, 2}}},
      {"foreach_adam_roots", {.operands = 1, .shared = 1}},
      {"foreach_adam_weights", {.operands = 3, .mutates = {0}, .shared = 1}},
      {"foreach_weight_decay", {.operands = 2}},
      {"fused_adam", {.operands = 4, .mutates = {0, 2, 3}, .shared = 1}},
      {"fused_sgd_momentum", {.operands = 3, .mutates = {0, 2}}},
  };
  const auto found = kinds.find(kind);
  return found == kinds.end() ? OperandGroups{} : found->second;
}

}  // namespace headroom
