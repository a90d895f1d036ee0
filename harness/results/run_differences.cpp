#include "harness/results/run_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace headroom {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

void add(Facts& facts, const std::string& what, const std::optional<std::string>& value) {
  facts.emplace_back(what, value.value_or("not known"));
}

void add(Facts& facts, std::string_view what, const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values)
    facts.emplace_back(fmt::format("{} {}", what, name), value);
}

std::string plan_line(const Experiment& experiment) {
  std::string line = fmt::format("{} x {}", experiment.id, experiment.blocks);
  for (const Arm& arm : experiment.arms)
    line += fmt::format("; {}: {} {}", arm.name, arm.cell.id(), arm.program);
  return line;
}

}  // namespace

Facts environment_facts(const RunInfo& info) {
  const MachineInfo& machine = info.machine;
  Facts facts;
  add(facts, "the processor", machine.cpu);
  add(facts, "the number of cores", std::to_string(machine.cores));
  add(facts, "the governor", machine.governor);
  add(facts, "the kernel", machine.kernel);
  add(facts, "the system", machine.os);
  add(facts, "the huge page setting", machine.transparent_hugepages);
  add(facts, "the GPU", machine.gpu);
  add(facts, "the GPU's driver", machine.gpu_driver);
  add(facts, "the library", info.libraries);
  add(facts, "the variable", info.environment);
  add(facts, "the compiler", info.headroom.compiler);
  add(facts, "the build type", info.headroom.build_type);
  add(facts, "the compiler flags", info.headroom.flags);
  // Step times are comparable only if the same figure sums them up, even on the same machine.
  add(facts, "the figure of step times", "median");
  return facts;
}

std::vector<RunDifference> differences_of(const Facts& first, const Facts& second) {
  const std::map<std::string, std::string> before(first.begin(), first.end());
  const std::map<std::string, std::string> after(second.begin(), second.end());
  std::vector<RunDifference> differences;
  for (const auto& [what, value] : first) {
    const auto found = after.find(what);
    const std::string now = found == after.end() ? "" : found->second;
    if (now != value) differences.push_back({what, value, now});
  }
  for (const auto& [what, value] : second)
    if (!before.contains(what)) differences.push_back({what, "", value});
  return differences;
}

std::vector<RunDifference> environment_differences(const RunInfo& first, const RunInfo& second) {
  return differences_of(environment_facts(first), environment_facts(second));
}

std::vector<std::string> plan_differences(const std::vector<Experiment>& first,
                                          const std::vector<Experiment>& second) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    const std::string before = i < first.size() ? plan_line(first[i]) : "";
    const std::string after = i < second.size() ? plan_line(second[i]) : "";
    if (before != after) names.push_back(i < first.size() ? first[i].id : second[i].id);
  }
  return names;
}

}  // namespace headroom
