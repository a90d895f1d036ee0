// headroom capture: runs a program on the machine's own GPU or CPU and reports what held memory.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/finish.h"
#include "harness/cli/record_directory.h"
#include "harness/cli/served_allocators.h"
#include "harness/cli/text/gpu/gpu_answer.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/device/host/host_memory.h"
#include "harness/virtual_gpu/launch.h"
#include "harness/watch/foreign_process.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// Runs the program once for figures alone, with this allocator or, if it is "", PyTorch's own.
ServedRun run_served(const CaptureOptions& options, const std::string& allocator, Bytes capacity,
                     const fs::path& records) {
  fs::create_directories(records);
  std::vector<std::string> environment =
      virtual_gpu::environment_for_capture(fs::absolute(records), options.until_step);
  for (std::string& variable :
       virtual_gpu::environment_for_serving({.allocator = allocator, .host_capacity = capacity}))
    environment.push_back(std::move(variable));
  const fs::path output = records / "output.txt";
  const int status = run_to_its_end(options.command,
                                    {.environment = std::move(environment), .output_file = output});
  if (status == 128 + SIGINT) throw Interrupted("interrupted");
  const virtual_gpu::Outcome outcome = virtual_gpu::read_outcome(records);
  GpuVerdict verdict = GpuVerdict::fits;
  if (outcome.out_of_memory())
    verdict = GpuVerdict::does_not_fit;
  else if (status != 0)
    verdict = GpuVerdict::failed;
  ServedRun run = served_run(allocator, verdict, outcome);
  run.output = output;
  return run;
}

// Runs PyTorch's own allocator and those of the options in turns, so that a disturbance of the
// machine affects all of them. Verdict and bytes are those of the first round, or of the last round
// that did not fit.
std::vector<ServedRun> run_all_served(const CaptureOptions& options, Bytes capacity,
                                      const fs::path& directory) {
  std::vector<std::string> allocators = options.allocators;
  allocators.insert(allocators.begin(), "");
  std::vector<ServedRun> runs(allocators.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t turn = 0; turn < allocators.size(); ++turn) {
      const std::size_t which = (turn + static_cast<std::size_t>(round)) % allocators.size();
      const ServedRun run =
          run_served(options, allocators[which], capacity,
                     directory / fmt::format("allocator-{}-round-{}", which, round + 1));
      std::vector<double> step_us = runs[which].step_us;
      step_us.insert(step_us.end(), run.step_us.begin(), run.step_us.end());
      if (round == 0 || run.verdict != GpuVerdict::fits) runs[which] = run;
      runs[which].step_us = std::move(step_us);
    }
  }
  return runs;
}

}  // namespace

ExitCode capture_command(const CaptureOptions& options) {
  Bytes capacity = 0;
  if (!options.allocators.empty()) {
    if (virtual_gpu::has_real_gpu())
      throw InputError(
          "capture: --allocator serves the memory of a CPU, and this machine has a GPU. For a "
          "virtual GPU, use headroom gpu CARD --beside-real-gpu --allocator");
    capacity = options.capacity.value_or(default_host_capacity());
    check_served_allocators(options.allocators, capacity);
  }
  const RecordDirectory records(options.out, "capture");
  const fs::path& directory = records.path();
  const int status =
      run_to_its_end(options.command, {.environment = virtual_gpu::environment_for_capture(
                                           fs::absolute(directory), options.until_step),
                                       .output_to_errors = options.json,
                                       .output_file = {}});
  CaptureAnswer answer{.exit_status = status,
                       .outcome = virtual_gpu::read_outcome(directory),
                       .directory = directory.string()};
  if (!options.allocators.empty() && is_of_cpu(answer))
    answer.served = run_all_served(options, capacity, directory);
  const nlohmann::ordered_json figures = to_json(answer);
  std::ofstream(directory / "gpu.json") << figures.dump(1) << "\n";
  if (options.html) write_memory_page(directory);
  if (options.json)
    print_json(figures);
  else
    out::print("\n{}", to_words(answer));
  if (status == 0 && answer.outcome.frameworks.empty()) return ExitCode::usage;
  return answer.outcome.was_stopped() ? ExitCode::ok : static_cast<ExitCode>(status);
}

}  // namespace headroom
