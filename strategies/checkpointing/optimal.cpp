// The least recomputation for a budget of memory: dynamic programming over the chain of modules
// chooses which modules are recomputed, and in which segments, following Gruslys et al. 2016
// ("Memory-Efficient Backpropagation Through Time") and Beaumont et al. 2019 ("Optimal
// checkpointing for heterogeneous chains"). Each module is recomputed at most once, together with
// its segment, as in torch.utils.checkpoint: nested recomputation (`recursive`) may fit where this
// does not.
//
// The budget limits the bytes held for the backward pass at any time (held.h), in each Program of a
// step; gradients, values that live only from one op to the next, weights and their states are not
// included. The work is counted, not measured: floating-point operations of products, then bytes
// that the ops read and write. The choice is exact when each module reads only from the module
// before it; otherwise the budget still holds, but a choice with less work may exist.
//
// With keep=host the budget is that of the device: the values from which segments are recomputed
// are kept in host memory. The choice is exact under the same condition without prefetching
// (prefetch=0).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "strategies/checkpointing/held.h"
#include "strategies/checkpointing/journeys.h"
#include "strategies/checkpointing/module_chain.h"
#include "strategies/checkpointing/segments.h"

namespace headroom {
namespace {

// A number of at most 1 is a share of the bytes that the step holds without checkpointing.
Bytes budget_of(const Spec& spec, const Program& plain) {
  const std::string text = spec.text("budget", "0.5");
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error != std::errc{} || end != text.data() + text.size() || share > 1)
    return spec.bytes("budget", 0);
  if (!(share > 0))
    throw InputError(fmt::format("{}: the budget must be a positive share or number of bytes",
                                 spec.to_string()));
  return static_cast<Bytes>(share * static_cast<double>(checkpointing::held_bytes(plain)));
}

checkpointing::Regions regions_of(const std::vector<checkpointing::Segment>& segments,
                                  const std::vector<checkpointing::Unit>& units,
                                  const Program& program) {
  checkpointing::Regions regions(checkpointing::forward_ops(program));
  for (const checkpointing::Segment& segment : segments) {
    if (!segment.again) continue;
    const int region = regions.add(0);
    std::fill(regions.of_op.begin() + static_cast<std::ptrdiff_t>(units[segment.first].first),
              regions.of_op.begin() + static_cast<std::ptrdiff_t>(units[segment.end - 1].end),
              region);
  }
  return regions;
}

Program apply_optimal(Program program, const Spec& spec) {
  using namespace checkpointing;
  const Bytes budget = budget_of(spec, program);
  const std::vector<Unit> units = units_of(program);
  const Chain chain =
      chain_of(program, units, keeps_on_host(spec) ? Keep::on_host : Keep::on_device);
  Bytes planned = budget;
  while (const auto segments = cheapest(chain, planned)) {
    Program made =
        keep_where_asked(recompute(program, regions_of(*segments, units, program)), spec);
    const Bytes held = held_bytes(made);
    if (held <= budget) return made;
    // A value is copied back ahead of its segment, or is read by more modules than the next one.
    const Bytes expected = highest(*segments);
    planned = expected - std::min(expected, held - budget);
    if (planned == 0) break;
  }
  const Bytes least = smallest_budget(chain) + (budget - planned);
  throw NotSupported(
      fmt::format("checkpointing={}: '{}' holds {} for its backward pass without recomputation, "
                  "and at least {} with recomputed modules, above the budget of {}; use "
                  "budget={} or more, or checkpointing=recursive",
                  spec.to_string(), program.name, format_bytes(held_bytes(program)),
                  format_bytes(least), format_bytes(budget), least));
}

const bool optimal_is_registered = Registry<CheckpointingStrategy>::instance().add(
    {.name = "optimal",
     .summary = "Recomputes the modules that are cheapest to recompute, so that no more than "
                "budget= (bytes, or a share of what the plain step holds) is held for the backward "
                "pass. Costs at most one more forward pass. keep=host recomputes them from values "
                "in host memory, copied back prefetch= ops ahead, at the cost of two copies",
     .parameters = {"budget", "keep", "prefetch"},
     .examples = {"optimal(budget=0.6)", "optimal(budget=0.8)", "optimal(budget=0.6,keep=host)"},
     .apply = apply_optimal,
     .why_not_engaged = checkpointing::why_segments_not_engaged});

}  // namespace
}  // namespace headroom
