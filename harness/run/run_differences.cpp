#include "harness/run/run_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace headroom {
namespace {

class Differences {
 public:
  void compare(std::string what, std::string first, std::string second) {
    if (first != second) found_.push_back({std::move(what), std::move(first), std::move(second)});
  }
  void compare(std::string what, const std::optional<std::string>& first,
               const std::optional<std::string>& second) {
    compare(std::move(what), first.value_or("not known"), second.value_or("not known"));
  }
  void compare(std::string_view what, std::map<std::string, std::string> first,
               std::map<std::string, std::string> second) {
    std::map<std::string, std::string> all = first;
    all.insert(second.begin(), second.end());
    for (const auto& [name, value] : all)
      compare(fmt::format("{} {}", what, name), first[name], second[name]);
  }
  std::vector<RunDifference> take() { return std::move(found_); }

 private:
  std::vector<RunDifference> found_;
};

std::string plan_line(const Experiment& experiment) {
  std::string line = fmt::format("{} x {}", experiment.id, experiment.blocks);
  for (const Arm& arm : experiment.arms) line += fmt::format("; {}: {}", arm.name, arm.cell.id());
  return line;
}

}  // namespace

std::vector<RunDifference> environment_differences(const RunInfo& first, const RunInfo& second) {
  Differences differences;
  const MachineInfo& a = first.machine;
  const MachineInfo& b = second.machine;
  differences.compare("the processor", a.cpu, b.cpu);
  differences.compare("the number of cores", std::to_string(a.cores), std::to_string(b.cores));
  differences.compare("the governor", a.governor, b.governor);
  differences.compare("the kernel", a.kernel, b.kernel);
  differences.compare("the system", a.os, b.os);
  differences.compare("the huge page setting", a.transparent_hugepages, b.transparent_hugepages);
  differences.compare("the GPU", a.gpu, b.gpu);
  differences.compare("the GPU's driver", a.gpu_driver, b.gpu_driver);
  differences.compare("the library", first.libraries, second.libraries);
  differences.compare("the variable", first.environment, second.environment);
  differences.compare("the compiler", first.headroom.compiler, second.headroom.compiler);
  differences.compare("the build type", first.headroom.build_type, second.headroom.build_type);
  differences.compare("the compiler flags", first.headroom.flags, second.headroom.flags);
  return differences.take();
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
