// headroom capture: runs a program on the machine's own GPU and reports what held memory.
#include <fstream>

#include "harness/cli/commands/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/record_directory.h"
#include "harness/cli/text/gpu/gpu_answer.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/virtual_gpu/launch.h"
#include "harness/watch/foreign_process.h"

namespace headroom {

ExitCode capture_command(const CaptureOptions& options) {
  const RecordDirectory records(options.out, "capture");
  const std::filesystem::path& directory = records.path();
  const int status = run_to_its_end(options.command,
                                    {.environment = virtual_gpu::environment_for_capture(
                                         std::filesystem::absolute(directory), options.until_step),
                                     .output_to_errors = options.json,
                                     .output_file = {}});
  const CaptureAnswer answer{.exit_status = status,
                             .outcome = virtual_gpu::read_outcome(directory),
                             .directory = directory.string()};
  const nlohmann::ordered_json figures = to_json(answer);
  std::ofstream(directory / "gpu.json") << figures.dump(1) << "\n";
  if (options.html) write_memory_page(directory);
  if (options.json)
    print_json(figures);
  else
    out::print("\n{}", to_words(answer));
  if (status == 0 && answer.outcome.frameworks.empty()) return ExitCode::usage;
  return static_cast<ExitCode>(status);
}

}  // namespace headroom
