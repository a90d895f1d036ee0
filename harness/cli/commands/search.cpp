// headroom search: the largest batch that really trains, the smallest memory it trains in, and
// which request fails beyond that.
#include "harness/cli/text/print.h"
#include "harness/whatif/memory_search.h"

#include <fmt/format.h>

#include "harness/base/units.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/planned_cells.h"
#include "harness/cli/text/search_text.h"

namespace headroom {

ExitCode search_command(const SearchOptions& options) {
  const PlanOptions& asked = options.asked;
  const PlannedCells planned =
      read_planned_cells(asked.workload, asked.device, asked.axes, asked.steps);
  const SearchProgress progress{
      .allocator =
          [](const Spec& allocator) { out::print(stderr, "Trying {}\n", allocator.to_string()); },
      .trained_trial =
          [](std::int64_t batch, Bytes capacity) {
            out::print(stderr, "  training batch {} on {}\n", batch, format_bytes(capacity));
          }};
  std::vector<MemorySearch> searches;
  for (const Cell& cell : planned.cells)
    searches.push_back(search_memory(cell, planned.allocators, options.points, progress));
  if (asked.json)
    print_searches_json(searches);
  else
    print_searches(searches);
  return ExitCode::ok;
}

}  // namespace headroom
