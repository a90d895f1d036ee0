#include "harness/plan/scenario.h"

#include <algorithm>

#include "harness/base/registry.h"
#include "harness/device/traits.h"
#include "harness/plan/experiment.h"

namespace headroom {
namespace {

const ScenarioKind& scenario_kind_of(const Spec& scenario) {
  return Registry<ScenarioKind>::instance().find(scenario.name());
}

bool is_training(const Spec& scenario) { return scenario.name() == kTraining; }

}  // namespace

bool trains(const Cell& cell) { return is_training(cell.scenario); }

std::string engine_of(const Spec& scenario) {
  if (is_training(scenario)) return "";
  const ScenarioKind& kind = scenario_kind_of(scenario);
  return kind.engine ? kind.engine(scenario) : "";
}

bool takes_workload(const Spec& scenario) {
  return is_training(scenario) || scenario_kind_of(scenario).takes_workload;
}

bool takes_turns(const Spec& scenario) {
  return is_training(scenario) || scenario_kind_of(scenario).run_in_turns != nullptr;
}

Reason unavailable_scenario(const Spec& scenario) {
  if (is_training(scenario)) return std::nullopt;
  const ScenarioKind& kind = scenario_kind_of(scenario);
  return kind.unavailable ? kind.unavailable(scenario) : std::nullopt;
}

bool is_exact_cell(const Cell& cell) {
  if (traits_of(cell.device).exact) return true;
  if (trains(cell)) return false;
  const auto& figures = scenario_kind_of(cell.scenario).figures;
  return std::all_of(figures.begin(), figures.end(),
                     [](const ScenarioFigure& figure) { return figure.exact; });
}

void check_scenario(const Spec& scenario) {
  if (is_training(scenario)) return scenario.require_known({});
  const ScenarioKind& kind = scenario_kind_of(scenario);
  if (kind.check) return kind.check(scenario);
  scenario.require_known(kind.parameters);
}

ScenarioResult run_scenario(const Cell& cell, std::uint64_t seed, int turns) {
  check_scenario(cell.scenario);
  const ScenarioKind& kind = scenario_kind_of(cell.scenario);
  return turns < 0 ? kind.run(cell, seed) : kind.run_in_turns(cell, seed, turns);
}

}  // namespace headroom
