#include "harness/results/json/experiment_json.h"

#include <algorithm>

namespace headroom {
namespace {

const std::string kComparison = "comparison";
const std::string kControl = "control";

}  // namespace

Json experiment_to_json(const Experiment& experiment) {
  Json arms = Json::array();
  for (const Arm& arm : experiment.arms) {
    arms.push_back({{"name", arm.name}, {"cell", cell_to_json(arm.cell, 0)}});
    if (!arm.program.empty()) arms.back()["program"] = arm.program;
  }
  return {{"id", experiment.id},
          {"origin", experiment.origin},
          {"point", experiment.point},
          {"kind", experiment.kind == ExperimentKind::control ? kControl : kComparison},
          {"blocks", experiment.blocks},
          {"max_blocks", std::max(experiment.blocks, experiment.max_blocks)},
          {"timeout_s", experiment.timeout_s},
          {"arms", arms}};
}

Experiment experiment_from(const Json& json) {
  Experiment experiment{.id = json.at("id").get<std::string>(),
                        .origin = json.at("origin").get<std::string>(),
                        .point = json.at("point").get<std::string>(),
                        .arms = {},
                        .blocks = json.at("blocks").get<int>(),
                        .timeout_s = json.at("timeout_s").get<int>()};
  experiment.max_blocks = json.value("max_blocks", 0);
  if (json.value("kind", kComparison) == kControl) experiment.kind = ExperimentKind::control;
  for (const Json& arm : json.at("arms"))
    experiment.arms.push_back({.name = arm.at("name").get<std::string>(),
                               .cell = cell_from_json(arm.at("cell")),
                               .program = arm.value("program", "")});
  return experiment;
}

}  // namespace headroom
