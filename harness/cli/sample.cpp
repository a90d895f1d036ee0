// The hidden command behind every sample: one cell, one process.
#include "harness/cli/commands.h"
#include "harness/run/sample_process.h"

namespace headroom {

ExitCode sample_command(const SampleOptions& options) {
  answer_sample_request(options.request, options.result_fd);
  return ExitCode::ok;
}

}  // namespace headroom
