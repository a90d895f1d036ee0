// headroom plan: whether a training run fits, up to which batch, and how much each allocator gains.
#include <algorithm>
#include <optional>

#include "harness/base/error.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/planned_cells.h"
#include "harness/cli/pytorch_needs.h"
#include "harness/cli/text/plan_text.h"

namespace headroom {
namespace {

bool serves_somewhere(const Fit& fit) {
  return std::any_of(fit.allocators.begin(), fit.allocators.end(),
                     [](const AllocatorFit& row) { return row.serves(); });
}

// Returns changes that would make the training run fit; none if there are several `fits`, if it
// fits already, or if the allocator cannot run here.
std::vector<Change> changes_for(const std::vector<Fit>& fits, const PlannedCells& planned) {
  if (fits.size() > 1) return {};
  const Spec usual(kUsualAllocator);
  const bool has_usual = std::find(planned.allocators.begin(), planned.allocators.end(), usual) !=
                         planned.allocators.end();
  const Spec& allocator = has_usual ? usual : planned.allocators.front();
  const auto& rows = fits.front().allocators;
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const AllocatorFit& one) {
    return one.allocator == allocator;
  });
  if (!row->refused.empty() || !row->outcome.failure) return {};
  return changes_that_fit(fits.front().cell, allocator);
}

}  // namespace

ExitCode plan_command(const PlanOptions& options) {
  const PlannedCells planned =
      read_planned_cells(options.workload, options.device, options.axes, options.steps);
  std::vector<Fit> fits;
  for (const Cell& cell : planned.cells) fits.push_back(find_fit(cell, planned.allocators));
  std::optional<PytorchNeeds> pytorch;
  if (options.pytorch) {
    if (fits.size() > 1) throw InputError("--pytorch: ask about one choice of axes at a time");
    pytorch = needs_of_pytorch(fits.front().cell, options.steps);
  }
  if (options.json)
    print_fits_json(fits, changes_for(fits, planned), pytorch);
  else
    print_fits(fits, changes_for(fits, planned), pytorch,
               options.all || options.axes.find("allocator") != options.axes.end());
  return std::any_of(fits.begin(), fits.end(), serves_somewhere) ? ExitCode::ok
                                                                 : ExitCode::does_not_fit;
}

}  // namespace headroom
