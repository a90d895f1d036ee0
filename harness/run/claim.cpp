#include "harness/run/claim.h"

#include <fmt/format.h>

namespace headroom {

std::string_view to_string(Judge judge) {
  switch (judge) {
    case Judge::ratio:
      return "ratio";
    case Judge::difference:
      return "difference";
    case Judge::bound:
      break;
  }
  return "bound";
}

std::string_view to_string(PartKind kind) {
  switch (kind) {
    case PartKind::direction:
      return "direction";
    case PartKind::number:
      return "number";
    case PartKind::cause:
      return "cause";
    case PartKind::control:
      break;
  }
  return "control";
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
    for (const ClaimArm& arm : source.arms) {
      Cell cell;
      cell.workload = source.workload;
      if (source.sweep) cell.workload.set(source.sweep->parameter, point);
      cell.device = source.device;
      cell.rules = source.rules;
      cell.allocator = arm.allocator;
      cell.warmup_steps = source.warmup_steps;
      cell.measured_steps = source.measured_steps;
      experiment.arms.push_back({arm.name, cell});
    }
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
