// The only place where layouts, padding, reorders and workspaces appear. Traces are comparable
// only under the same rules, whose full name stands in the lowered Program and in every trace.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom {

// Layout of persistent values decided by the first Program lowered (name → value); a second
// Program that shares them (evaluation) must take them as they are and reorder where it wants
// another layout.
using PersistentLayouts = std::map<std::string, Value>;

// `dense`: plain sizes, no library. `onednn`: blocked layouts, reorders and scratchpads of the
// library on this machine, computed without touching tensor memory.
struct LoweringRules {
  static constexpr std::string_view kKind = "lowering rules";
  std::string name;
  std::string summary;
  std::vector<std::string> parameters = {};
  // Full name with library version, instruction set and thread count.
  std::function<std::string(const Spec&)> identity;
  // Fills Value::bytes and layout, inserts "reorder" ops, sets Op::workspace.
  std::function<Program(Program, PersistentLayouts&, const Spec&)> lower;
};

// `rules` as a user names them: "cudnn", "cudnn(workspace_limit=1GiB)". Throws InputError for a
// name or a parameter that is unknown.
Program lower(Program program, std::string_view rules, PersistentLayouts& persistent);

}  // namespace headroom
