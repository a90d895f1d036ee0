#include "harness/cli/against.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "harness/base/file.h"
#include "harness/cli/text/print.h"
#include "harness/runner/provenance.h"

namespace headroom {
namespace {

constexpr const char* kBefore = "before";
constexpr const char* kAfter = "after";

bool is_program(const std::filesystem::path& file) {
  return std::filesystem::is_regular_file(file) && ::access(file.c_str(), X_OK) == 0;
}

}  // namespace

void pair_with(RunPlan& plan, const std::filesystem::path& program) {
  if (!is_program(program))
    throw InputError(
        fmt::format("--against {}: is not a program; name the headroom of another build, as in "
                    "/tmp/old/build/headroom",
                    program.string()));
  const std::string path = std::filesystem::canonical(program).string();
  std::vector<Experiment> pairs;
  for (const Experiment& experiment : plan.experiments) {
    if (experiment.origin != plan.suite) continue;  // the experiment belongs to a claim
    if (experiment.kind == ExperimentKind::control) {
      pairs.push_back(experiment);
      continue;
    }
    for (const Arm& arm : experiment.arms) {
      Experiment pair = experiment;
      pair.id = experiment.id + "/" + arm.name;
      pair.arms = {{.name = kBefore, .cell = arm.cell, .program = path},
                   {.name = kAfter, .cell = arm.cell}};
      pairs.push_back(std::move(pair));
    }
  }
  plan.experiments = std::move(pairs);
  plan.claims.clear();
  plan.files.push_back(describe_data_file(path, "program"));
}

bool tell_what_is_worse(const std::filesystem::path& run) {
  const auto verdicts = nlohmann::json::parse(read_file(run / "verdicts.json"));
  bool any = false;
  std::string before;  // status of the "before" entry
  for (const auto& entry : verdicts.at("matrix")) {
    if (entry.at("arm") == kBefore) before = entry.at("status");
    if (entry.at("arm") != kAfter) continue;
    const auto tell = [&](const std::string& what) {
      any = true;
      out::print("worse: {}: {}.\n", entry.at("experiment").get<std::string>(), what);
    };
    if (before == "ok" && entry.at("status") != "ok") tell(entry.at("reason"));
    for (const auto& [metric, comparison] : entry.at("comparisons").items())
      if (comparison.at("verdict") == "WORSE")
        tell(fmt::format("{} by {:+.1f} %", metric, 100 * comparison.at("effect").get<double>()));
  }
  return any;
}

}  // namespace headroom
