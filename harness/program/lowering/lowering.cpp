#include "harness/program/lowering.h"

#include "harness/base/registry.h"

namespace headroom {

Program lower(Program program, std::string_view rules, PersistentLayouts& persistent) {
  const LoweringRules& chosen = Registry<LoweringRules>::instance().find(rules);
  Program lowered = chosen.lower(std::move(program), persistent);
  lowered.rules = chosen.identity();
  validate(lowered);
  return lowered;
}

}  // namespace headroom
