#include "harness/program/lowering/lowering.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"

namespace headroom {
namespace {

// Limits the total, so that the bytes of several Programs, rounded up by an allocator, still fit 64
// bits.
void check_total(const Program& lowered) {
  constexpr Bytes kMost = Bytes{1} << 58;
  Bytes total = 0;
  for (const Value& value : lowered.values) {
    // A value has at most 8 bytes for each of kMostElements, so no sum up to here can wrap around.
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
