#include "harness/program/lowering/lowering.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"

namespace headroom {
namespace {

// What several Programs take together, rounded up by an allocator, then still fits 64 bits.
void check_total(const Program& lowered) {
  constexpr Bytes kMost = Bytes{1} << 58;
  Bytes total = 0;
  for (const Value& value : lowered.values) {
    // No value has more than 8 bytes of each of kMostElements: no sum up to here can wrap.
    total += value.bytes;
    if (total > kMost)
      throw InputError(
          fmt::format("the values of '{}' take more than {} TiB together; make batch, layers or "
                      "widths smaller",
                      lowered.name, kMost / kGiB / 1024));
  }
}

}  // namespace

Program lower(Program program, std::string_view rules, PersistentLayouts& persistent) {
  const Spec spec = Spec::parse(rules);
  const LoweringRules& chosen = Registry<LoweringRules>::instance().find(spec.name());
  spec.require_known(chosen.parameters);
  Program lowered = chosen.lower(std::move(program), persistent, spec);
  lowered.rules = chosen.identity(spec);
  check_total(lowered);
  validate(lowered);
  return lowered;
}

}  // namespace headroom
