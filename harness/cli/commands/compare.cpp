// headroom compare: how exact metrics changed between two stored runs.
#include <fmt/format.h>

#include "harness/cli/commands/commands.h"
#include "harness/cli/text/changes_json.h"
#include "harness/cli/text/print.h"
#include "harness/evidence/compare_runs.h"

namespace headroom {
namespace {

void print_cells(const RunChanges& changes) {
  std::size_t same = 0;
  for (const CellChange& cell : changes.cells) {
    if (cell.outcome == CellOutcome::same) {
      ++same;
      continue;
    }
    out::print("{}: {} [{}]: {}.\n", to_string(cell.outcome), cell.experiment, cell.arm,
               cell.sentence);
  }
  for (const std::string& cell : changes.missing) out::print("missing: {}.\n", cell);
  for (const std::string& cell : changes.added) out::print("new: {}.\n", cell);
  out::print("{} of {} cells in both are the same to the last bit.\n", same, changes.cells.size());
}

void print_environment(const RunChanges& changes) {
  for (const auto& [what, first, second] : changes.environment)
    out::print("{} was '{}' and is '{}'.\n", what, first, second);
}

}  // namespace

ExitCode compare_command(const CompareOptions& options) {
  const RunChanges changes = compare_runs(read_run(options.first), read_run(options.second));
  if (options.json) {
    out::print("{}\n", changes_json(changes));
  } else {
    print_cells(changes);
    print_environment(changes);
    out::print("{}\n", kWhyNoTimes);
  }
  return options.fail_on_worse && changes.has_regression() ? ExitCode::regression : ExitCode::ok;
}

}  // namespace headroom
