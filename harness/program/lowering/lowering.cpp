#include "harness/program/lowering/lowering.h"

#include "harness/base/registry.h"

namespace headroom {

Program lower(Program program, std::string_view rules, PersistentLayouts& persistent) {
  const Spec spec = Spec::parse(rules);
  const LoweringRules& chosen = Registry<LoweringRules>::instance().find(spec.name());
  spec.require_known(chosen.parameters);
  Program lowered = chosen.lower(std::move(program), persistent, spec);
  lowered.rules = chosen.identity(spec);
  validate(lowered);
  return lowered;
}

}  // namespace headroom
