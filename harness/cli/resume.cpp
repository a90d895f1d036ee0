#include "harness/cli/resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "harness/results/run_differences.h"
#include "harness/runner/provenance.h"

namespace headroom {

RunOptions original_options(const RunInfo& info, const std::filesystem::path& run) {
  const Command command = parse_command_line(info.argv);
  const auto* options = std::get_if<RunOptions>(&command);
  if (options == nullptr)
    throw InputError(fmt::format("run {}: its recorded command is not headroom run", info.run_id));
  RunOptions original = *options;
  // A relative path of the suite refers to the directory of the original call, not the current one.
  const std::filesystem::path suite = run / info.directory / original.suite;
  if (!info.directory.empty() && std::filesystem::is_regular_file(suite))
    original.suite = std::filesystem::canonical(suite).string();
  return original;
}

void require_same_run(const RunInfo& info, const RunPlan& plan_now) {
  RunInfo now;
  add_provenance(now);
  std::vector<std::string> changes;
  if (const auto names = plan_differences(info.experiments, plan_now.experiments); !names.empty())
    changes.push_back(fmt::format("the suite or its claims changed ({})", fmt::join(names, ", ")));
  if (info.headroom.executable_sha256 != now.headroom.executable_sha256)
    changes.push_back(fmt::format("the program was rebuilt (then commit {}, now {})",
                                  info.headroom.commit.value_or("unknown"),
                                  now.headroom.commit.value_or("unknown")));
  std::vector<RunDifference> differences = environment_differences(info, now);
  if (info.machine.hostname_hash != now.machine.hostname_hash)
    differences.push_back({"the machine", info.machine.hostname_hash, now.machine.hostname_hash});
  for (const auto& [what, then, today] : differences)
    changes.push_back(fmt::format("{} was '{}' and is '{}'", what, then, today));
  if (!changes.empty())
    throw InputError(
        fmt::format("run {} cannot be resumed, because its samples would not be "
                    "comparable: {}. Start a new one with: headroom run {}",
                    info.run_id, fmt::join(changes, "; "), info.suite));
}

}  // namespace headroom
