// headroom export-state: writes the initial state of a run to files, for the side-by-side
// benchmarks.
#include "harness/training/export_state.h"
#include "harness/cli/text/print.h"

#include <fmt/format.h>

#include "harness/cli/commands/commands.h"

namespace headroom {

ExitCode export_state_command(const ExportStateOptions& options) {
  Cell cell;
  cell.workload = Spec::parse(options.workload);
  cell.device = Spec::parse(options.device);
  cell.optimizer = Spec::parse(options.optimizer);
  cell.allocator = Spec("bfc", {{"growth", "on"}});
  export_state(cell, options.seed, options.steps, options.out);
  out::print("{}\n", (options.out / "manifest.json").string());
  return ExitCode::ok;
}

}  // namespace headroom
