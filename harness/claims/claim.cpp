#include "harness/claims/claim.h"

#include <fmt/format.h>

#include "harness/plan/axes.h"

namespace headroom {

std::string_view to_string(Judge judge) {
  switch (judge) {
    case Judge::ratio:
      return "ratio";
    case Judge::difference:
      return "difference";
    case Judge::bound:
      return "bound";
    case Judge::predicate:
      break;
  }
  return "predicate";
}

bool needs_no_baseline(Judge judge) { return judge == Judge::bound || judge == Judge::predicate; }

std::string_view to_string(PartKind kind) {
  switch (kind) {
    case PartKind::direction:
      return "direction";
    case PartKind::number:
      return "number";
    case PartKind::cause:
      return "cause";
    case PartKind::interface:
      return "interface";
    case PartKind::control:
      break;
  }
  return "control";
}

void set_swept(Cell& cell, const Sweep& sweep, const std::string& value) {
  Spec spec = Spec::parse_composition(axis_value(cell, sweep.axis));
  spec.set(sweep.parameter, value);
  set_axis(cell, sweep.axis, spec.to_string());
}

std::vector<Experiment> experiments_of(const Claim& claim, const ClaimExperiment& source) {
  const auto at = [&](const std::string& point) {
    Experiment experiment;
    experiment.id = fmt::format("{}/{}", claim.id, source.name);
    if (source.sweep) experiment.id += fmt::format("/{}={}", source.sweep->parameter, point);
    experiment.origin = claim.id;
    experiment.point = point;
    experiment.blocks = source.blocks;
    experiment.timeout_s = source.timeout_s;
    experiment.estimated_seconds = source.estimated_seconds;
    experiment.arms = source.arms;
    if (source.sweep)
      for (Arm& arm : experiment.arms) set_swept(arm.cell, *source.sweep, point);
    return experiment;
  };
  if (!source.sweep) return {at("")};
  std::vector<Experiment> experiments;
  for (const std::string& value : source.sweep->values) experiments.push_back(at(value));
  return experiments;
}

std::vector<Experiment> experiments_of(const Claim& claim) {
  std::vector<Experiment> experiments;
  for (const ClaimExperiment& source : claim.experiments)
    for (Experiment& experiment : experiments_of(claim, source))
      experiments.push_back(std::move(experiment));
  return experiments;
}

}  // namespace headroom
