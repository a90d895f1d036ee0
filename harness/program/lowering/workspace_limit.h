// The maximum workspace of one convolution, passed from the lowering rules to the kernels as an
// attribute of the op, so that the same algorithm is chosen when the Program is compiled.
#pragma once

#include <optional>

#include "harness/program/program.h"

namespace headroom {

inline bool is_convolution(const Op& op) {
  return op.kind.find("convolution") != std::string::npos;  // forward, backward and transposed
}

inline void limit_workspaces(Program& program, Bytes limit) {
  for (Op& op : program.ops)
    if (is_convolution(op)) op.attributes["workspace_limit"] = static_cast<std::int64_t>(limit);
}

inline std::optional<Bytes> workspace_limit(const Op& op) {
  if (!op.attributes.contains("workspace_limit")) return std::nullopt;
  return static_cast<Bytes>(op.integer("workspace_limit"));
}

}  // namespace headroom
