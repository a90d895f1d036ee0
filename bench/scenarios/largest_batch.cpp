// largest_batch: the largest batch of the cell's workload that trains within the capacity of its
// device under its allocator, found by trial, because whether a batch fits depends on the strategy.
// Batches whose live bytes alone exceed the capacity are never tried; below that bound, a batch
// that fails says nothing about smaller or larger ones (harness/whatif/largest_batch.h).
//
// Simulated: requests are served on a virtual capacity, so the device must be meta. Cost: one plan
// of the training per batch tried.
#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/scenario.h"
#include "harness/whatif/fit.h"

namespace headroom {
namespace {

ScenarioResult find(const Cell& cell, std::uint64_t) {
  const Fit fit = find_fit(cell, {cell.allocator});
  const AllocatorFit& found = fit.allocators.front();
  if (!found.refused.empty()) throw NotSupported(found.refused);
  if (!fit.last_batch_by_live_bytes)
    throw InputError(fmt::format("{}: has no parameter 'batch' to try", cell.workload.to_string()));
  return {.figures = {{"largest_batch", static_cast<double>(found.largest.batch)},
                      {"bound_by_live_bytes", static_cast<double>(*fit.last_batch_by_live_bytes)}},
          .note = "",
          .why_not_engaged = {}};
}

const bool largest_batch_is_registered = Registry<ScenarioKind>::instance().add(
    {.name = "largest_batch",
     .summary =
         "Searches for the largest batch that trains in the capacity of the device; simulated",
     .parameters = {},
     .examples = {"largest_batch"},
     .figures = {{.name = "largest_batch",
                  .unit = "1",
                  .text = "largest batch that trains",
                  .exact = true,
                  .more_is_better = true,
                  .depends_on = DependsOn::allocator},
                 {.name = "bound_by_live_bytes",
                  .unit = "1",
                  .text = "largest batch whose live bytes fit",
                  .exact = true,
                  .more_is_better = true}},
     .check = nullptr,
     .run = find,
     .engine = nullptr,
     .takes_workload = true});

}  // namespace
}  // namespace headroom
