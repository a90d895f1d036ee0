// The hidden commands that take a sample: one cell in one process.
#include "harness/cli/commands/commands.h"
#include "harness/runner/sample_process.h"

namespace headroom {

ExitCode sample_command(const SampleOptions& options) {
  answer_sample_request(options.request, options.result_fd);
  return ExitCode::ok;
}

ExitCode touch_command(const TouchOptions& options) {
  touch_device_memory(Spec::parse(options.device));
  return ExitCode::ok;
}

}  // namespace headroom
