// The only place where layouts, padding, reorders and workspaces are introduced. Traces are
// comparable only under the same rules, whose full name is recorded in the lowered Program and in
// every trace.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/spec.h"
#include "harness/program/program.h"

namespace headroom {

// Layouts of persistent values (name → value), decided by the first Program lowered. A second
// Program that shares them (evaluation) must use these layouts and insert reorders where it wants
// others.
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

// `rules` is a spec such as "cudnn" or "cudnn(workspace_limit=1GiB)". Throws InputError for an
// unknown name or parameter.
Program lower(Program program, std::string_view rules, PersistentLayouts& persistent);

}  // namespace headroom
