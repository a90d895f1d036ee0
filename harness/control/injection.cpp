#include "harness/control/injection.h"

#include "harness/base/registry.h"

namespace headroom {

void check_injection(const Spec& spec) {
  if (spec.name() == kNoInjection) return spec.require_known({});
  spec.require_known(Registry<InjectionKind>::instance().find(spec.name()).parameters);
}

std::unique_ptr<Injection> make_injection(const Spec& spec, Allocator& allocator) {
  check_injection(spec);
  if (spec.name() == kNoInjection) return nullptr;
  return Registry<InjectionKind>::instance().find(spec.name()).create(spec, allocator);
}

}  // namespace headroom
