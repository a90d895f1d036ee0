// headroom export: writes an allocation history in another program's format.
#include <fmt/format.h>

#include "harness/cli/commands/commands.h"
#include "harness/cli/history.h"
#include "harness/cli/text/print.h"

namespace headroom {

ExitCode export_command(const ExportOptions& options) {
  convert_history(options.file, options.out, options.format);
  out::print("{}\n", options.out.string());
  return ExitCode::ok;
}

}  // namespace headroom
