#include "harness/cli/text/dry_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/results/json/experiment_json.h"
#include "harness/results/schema_check.h"
#include "harness/runner/run_time.h"
#include "harness/runner/sample_process.h"

namespace headroom {
namespace {

std::size_t cell_count(const RunPlan& plan) {
  std::size_t cells = 0;
  for (const Experiment& experiment : plan.experiments) cells += experiment.arms.size();
  return cells;
}

// Why a cell cannot be measured here.
std::optional<std::string> why_not_here(const Cell& cell) {
  const auto unsupported = unsupported_sample(cell);
  return unsupported ? std::optional(unsupported->reason) : std::nullopt;
}

Json to_json(const Experiment& experiment) {
  Json json = value_to_json(experiment);
  for (std::size_t arm = 0; arm < experiment.arms.size(); ++arm)
    json["arms"][arm]["not_here"] = value_or_null(why_not_here(experiment.arms[arm].cell));
  return json;
}

}  // namespace

void print_dry_run(const RunPlan& plan) {
  for (const Experiment& experiment : plan.experiments) {
    out::print("{}{}\n", experiment.id,
               experiment.max_blocks > experiment.blocks
                   ? fmt::format(" (a pilot of {} pairs; up to {} where its noise asks for more)",
                                 experiment.blocks, experiment.max_blocks)
                   : "");
    for (const Arm& arm : experiment.arms) {
      const auto why_not = why_not_here(arm.cell);
      out::print("  {} x {}{}\n", experiment.blocks, arm.cell.id(),
                 why_not ? fmt::format(" [not available here: {}]", *why_not) : "");
    }
  }
  out::print("{} configurations in {} experiments, {} samples. It takes about {} (an estimate).\n",
             cell_count(plan), plan.experiments.size(), sample_count(plan.experiments),
             to_string(estimate(plan.experiments)));
}

void print_dry_run_json(const RunPlan& plan) {
  const RunTime time = estimate(plan.experiments);
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "dry_run"},
               {"suite", plan.suite},
               {"claims", plan.claims},
               {"cells", cell_count(plan)},
               {"samples", sample_count(plan.experiments)},
               {"estimated_s", time.planned.count()},
               {"estimated_longest_s", time.longest.count()},
               {"experiments", Json::array()}};
  for (const Experiment& experiment : plan.experiments)
    json["experiments"].push_back(to_json(experiment));
  print_json(json);
}

}  // namespace headroom
