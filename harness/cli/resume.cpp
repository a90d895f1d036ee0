#include "harness/cli/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/run/provenance.h"

namespace headroom {
namespace {

std::string plan_line(const Experiment& experiment) {
  std::string line = fmt::format("{} x {}", experiment.id, experiment.blocks);
  for (const Arm& arm : experiment.arms) line += fmt::format("; {}: {}", arm.name, arm.cell.id());
  return line;
}

// Experiments that are in one plan and not, or not in the same form, in the other.
std::vector<std::string> differences(const std::vector<Experiment>& then,
                                     const std::vector<Experiment>& now) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::max(then.size(), now.size()); ++i) {
    const std::string before = i < then.size() ? plan_line(then[i]) : "";
    const std::string after = i < now.size() ? plan_line(now[i]) : "";
    if (before != after) names.push_back(i < then.size() ? then[i].id : now[i].id);
  }
  return names;
}

void compare(std::vector<std::string>& changes, std::string_view what, const std::string& then,
             const std::string& now) {
  if (then != now) changes.push_back(fmt::format("{} was '{}' and is '{}'", what, then, now));
}

void compare(std::vector<std::string>& changes, std::string_view what,
             std::map<std::string, std::string> then, std::map<std::string, std::string> now) {
  std::map<std::string, std::string> all = then;
  all.insert(now.begin(), now.end());
  for (const auto& [name, value] : all)
    compare(changes, fmt::format("{} {}", what, name), then[name], now[name]);
}

}  // namespace

RunOptions original_options(const RunInfo& info) {
  const Command command = parse_command_line(info.argv);
  const auto* options = std::get_if<RunOptions>(&command);
  if (options == nullptr)
    throw InputError(fmt::format("run {}: its command line is no headroom run", info.run_id));
  return *options;
}

void require_same_run(const RunInfo& info, const Plan& plan_now) {
  RunInfo now;
  add_provenance(now);
  std::vector<std::string> changes;
  if (const auto names = differences(info.experiments, plan_now.experiments); !names.empty())
    changes.push_back(
        fmt::format("suite or claims ask for something else ({})", fmt::join(names, ", ")));
  if (info.headroom.executable_sha256 != now.headroom.executable_sha256)
    changes.push_back(fmt::format("the program was built anew (then commit {}, now {})",
                                  info.headroom.commit.value_or("unknown"),
                                  now.headroom.commit.value_or("unknown")));
  compare(changes, "the machine", info.machine.hostname_hash, now.machine.hostname_hash);
  compare(changes, "the processor", info.machine.cpu, now.machine.cpu);
  compare(changes, "the number of cores", std::to_string(info.machine.cores),
          std::to_string(now.machine.cores));
  compare(changes, "the kernel", info.machine.kernel, now.machine.kernel);
  compare(changes, "the library", info.libraries, now.libraries);
  compare(changes, "the variable", info.environment, now.environment);
  if (!changes.empty())
    throw InputError(
        fmt::format("run {} cannot be gone on with, since its samples would not be "
                    "comparable: {}. Start a new one with: headroom run {}",
                    info.run_id, fmt::join(changes, "; "), info.suite));
}

}  // namespace headroom
