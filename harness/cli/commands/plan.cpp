// headroom plan: whether a training run fits, up to which batch, and how much each allocator gains.
#include <algorithm>

#include "harness/cli/commands/commands.h"
#include "harness/cli/planned_cells.h"
#include "harness/cli/text/plan_text.h"

namespace headroom {
namespace {

bool serves_somewhere(const Fit& fit) {
  return std::any_of(fit.allocators.begin(), fit.allocators.end(), [](const AllocatorFit& row) {
    return row.refused.empty() && !row.outcome.failure;
  });
}

}  // namespace

ExitCode plan_command(const PlanOptions& options) {
  const PlannedCells planned =
      read_planned_cells(options.workload, options.device, options.axes, options.steps);
  std::vector<Fit> fits;
  for (const Cell& cell : planned.cells) fits.push_back(find_fit(cell, planned.allocators));
  if (options.json)
    print_fits_json(fits);
  else
    print_fits(fits);
  return std::any_of(fits.begin(), fits.end(), serves_somewhere) ? ExitCode::ok
                                                                 : ExitCode::does_not_fit;
}

}  // namespace headroom
