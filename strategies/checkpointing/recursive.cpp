// Chen et al. 2016, section 4.2, with halves: the first half of the modules is dropped, recomputed
// when the backward pass reaches it, and then treated in the same way. Only values between nested
// halves are alive: O(log n) of them for n equal modules, at the cost of O(n log n) forward work.
// With keep=host they are kept in host memory, including those recomputed for a later half.
#include <algorithm>
#include <span>

#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/checkpointing/journeys.h"
#include "strategies/checkpointing/segments.h"

namespace headroom {
namespace {

using checkpointing::Regions;
using checkpointing::Unit;

// The second half stays in `region` itself, because its backward pass comes next.
void halve(Regions& regions, std::span<const Unit> units, int region) {
  if (units.empty()) return;
  for (const Unit& unit : units)
    std::fill(regions.of_op.begin() + static_cast<std::ptrdiff_t>(unit.first),
              regions.of_op.begin() + static_cast<std::ptrdiff_t>(unit.end), region);
  if (units.size() == 1) return;
  const std::size_t half = units.size() / 2;
  halve(regions, units.first(half), regions.add(region));
  halve(regions, units.subspan(half), region);
}

Program apply_recursive(Program program, const Spec& spec) {
  Regions regions(checkpointing::forward_ops(program));
  halve(regions, checkpointing::units_of(program), 0);
  return checkpointing::keep_where_asked(checkpointing::recompute(std::move(program), regions),
                                         spec);
}

const bool recursive_is_registered = Registry<CheckpointingStrategy>::instance().add(
    {.name = "recursive",
     .summary = "Halves the modules again and again and recomputes what is between. Activations "
                "grow as the logarithm of the depth; costs a forward pass for every doubling of "
                "the depth. keep=host keeps the values between halves in host memory and copies "
                "them back prefetch= ops ahead, at the cost of two copies",
     .parameters = {"keep", "prefetch"},
     .examples = {"recursive", "recursive(keep=host)"},
     .apply = apply_recursive,
     .why_not_engaged = checkpointing::why_segments_not_engaged});

}  // namespace
}  // namespace headroom
