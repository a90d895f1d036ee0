// headroom list: every registered plug-in and every file that can be given by name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/base/home.h"
#include "harness/base/registry.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/run_plan.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/control/injection.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"
#include "harness/plan/accumulation.h"
#include "harness/plan/scenario.h"
#include "harness/plan/suite.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/workload/pipeline.h"
#include "harness/workload/workload.h"

namespace headroom {
namespace {

// A value of an axis that an example of a plug-in cannot be combined with.
struct Exclusion {
  std::string example, axis, name, why;
};

struct Entry {
  std::string name;
  std::string summary;
  std::vector<std::string> parameters;
  std::vector<std::string> examples;
  std::string breaks = {};
  std::vector<Exclusion> excludes = {};
};

struct Section {
  std::string name;
  std::vector<Entry> entries;
};

template <typename Plugin>
std::vector<Exclusion> exclusions_of(const Plugin& plugin) {
  std::vector<Exclusion> result;
  for (const std::string& example : plugin.examples)
    for (const Refusal& refusal : plugin.refuses)
      if (!refusal.when || refusal.when(Spec::parse(example)))
        result.push_back({example, refusal.axis, refusal.name, refusal.why});
  return result;
}

template <typename Plugin>
Section section_of(const char* name) {
  Section section{.name = name, .entries = {}};
  for (const auto& [key, plugin] : Registry<Plugin>::instance().all()) {
    Entry entry{.name = key, .summary = plugin.summary, .parameters = {}, .examples = {}};
    if constexpr (requires { plugin.parameters; }) entry.parameters = plugin.parameters;
    if constexpr (requires { plugin.examples; }) entry.examples = plugin.examples;
    if constexpr (requires { plugin.breaks; }) entry.breaks = plugin.breaks;
    if constexpr (requires { plugin.refuses; }) entry.excludes = exclusions_of(plugin);
    if constexpr (requires { plugin.unavailable(); }) {
      const std::string why = plugin.unavailable ? plugin.unavailable() : "";
      if (!why.empty()) entry.summary += fmt::format(" [not available here: {}]", why);
    }
    section.entries.push_back(std::move(entry));
  }
  return section;
}

Section suites() {
  const auto directory = headroom_home() / "bench" / "suites";
  Section section{.name = "suites", .entries = {}};
  for (const std::string& name : suite_names(directory)) {
    const Suite suite = read_suite(directory / (name + ".toml"));
    section.entries.push_back({name, suite.description, {}, {"headroom run " + name}});
  }
  return section;
}

Section claims() {
  Section section{.name = "claims", .entries = {}};
  for (const Claim& claim : find_claims({}))
    section.entries.push_back({claim.id, claim.title, {}, {}});
  return section;
}

const std::vector<std::pair<std::string, Section (*)()>>& sections() {
  static const std::vector<std::pair<std::string, Section (*)()>> list = {
      {"workloads", [] { return section_of<WorkloadKind>("workloads"); }},
      {"allocators", [] { return section_of<AllocatorStrategy>("allocators"); }},
      {"adaptors", [] { return section_of<AllocatorAdaptor>("adaptors"); }},
      {"executions", [] { return section_of<ExecutionStrategy>("executions"); }},
      {"accumulations", [] { return section_of<AccumulationStrategy>("accumulations"); }},
      {"checkpointings", [] { return section_of<CheckpointingStrategy>("checkpointings"); }},
      {"precisions", [] { return section_of<PrecisionStrategy>("precisions"); }},
      {"prunings", [] { return section_of<PruningStrategy>("prunings"); }},
      {"optimizers", [] { return section_of<OptimizerStrategy>("optimizers"); }},
      {"pipelines", [] { return section_of<StageKind>("pipelines"); }},
      {"injections", [] { return section_of<InjectionKind>("injections"); }},
      {"scenarios", [] { return section_of<ScenarioKind>("scenarios"); }},
      {"devices", [] { return section_of<DeviceKind>("devices"); }},
      {"rules", [] { return section_of<LoweringRules>("rules"); }},
      {"suites", suites},
      {"claims", claims},
  };
  return list;
}

void print(const Section& section) {
  out::print("{}\n", section.name);
  std::size_t width = 0;
  for (const Entry& entry : section.entries) width = std::max(width, entry.name.size());
  for (const Entry& entry : section.entries) {
    out::print("  {:{}}  {}\n", entry.name, width, entry.summary);
    if (!entry.parameters.empty())
      out::print("  {:{}}  parameters: {}\n", "", width, fmt::join(entry.parameters, ", "));
    for (const std::string& example : entry.examples)
      out::print("  {:{}}  e.g. {}\n", "", width, example);
  }
  if (section.entries.empty()) out::print("  none\n");
}

void print_names(const Section& section) {
  std::vector<std::string> names;
  for (const Entry& entry : section.entries) names.push_back(entry.name);
  out::print("{:<15} {}\n", section.name,
             names.empty() ? "none" : fmt::to_string(fmt::join(names, ", ")));
}

nlohmann::ordered_json to_json(const Section& section) {
  auto list = nlohmann::ordered_json::array();
  for (const Entry& entry : section.entries) {
    auto excludes = nlohmann::ordered_json::array();
    for (const auto& [example, axis, name, why] : entry.excludes)
      excludes.push_back({{"example", example}, {"axis", axis}, {"name", name}, {"why", why}});
    list.push_back({{"name", entry.name},
                    {"summary", entry.summary},
                    {"parameters", entry.parameters},
                    {"examples", entry.examples},
                    {"breaks", entry.breaks},
                    {"excludes", excludes}});
  }
  return list;
}

}  // namespace

std::vector<std::string> listed_kinds() {
  std::vector<std::string> names;
  for (const auto& [name, section] : sections()) names.push_back(name);
  return names;
}

ExitCode list_command(const ListOptions& options) {
  const std::vector<std::string> names = listed_kinds();
  if (!options.what.empty() && std::find(names.begin(), names.end(), options.what) == names.end())
    throw_unknown_name("list", options.what, names);
  auto json = nlohmann::ordered_json::object();
  for (const auto& [name, section] : sections()) {
    if (!options.what.empty() && name != options.what) continue;
    if (options.json) {
      json[name] = to_json(section());
    } else if (options.what.empty()) {
      print_names(section());
    } else {
      print(section());
    }
  }
  if (options.json)
    print_json(json);
  else if (options.what.empty())
    out::print("\nSummaries, parameters and examples of one kind: headroom list allocators\n");
  return ExitCode::ok;
}

}  // namespace headroom
