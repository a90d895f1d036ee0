// The JSON fields of an experiment in run.json.
#pragma once

#include <algorithm>

#include "harness/plan/experiment.h"
#include "harness/results/json/record.h"

namespace headroom {

inline std::string to_string(ExperimentKind kind) {
  return kind == ExperimentKind::control ? "control" : "comparison";
}
template <>
inline constexpr auto kNames<ExperimentKind> =
    std::array{ExperimentKind::control, ExperimentKind::comparison};

template <typename Visitor, RecordOf<Arm> Record>
void fields(Visitor& visit, Record& arm) {
  visit.required("name", arm.name);
  if constexpr (Visitor::kReads) {
    arm.cell = cell_from_json(visit.json().at("cell"));
    visit.later("program", arm.program);
  } else {
    visit.derived("cell", cell_to_json(arm.cell, 0));
    if (!arm.program.empty()) visit.required("program", arm.program);
  }
}

template <typename Visitor, RecordOf<Experiment> Record>
void fields(Visitor& visit, Record& experiment) {
  visit.required("id", experiment.id);
  visit.required("origin", experiment.origin);
  visit.required("point", experiment.point);
  visit.later("kind", experiment.kind);
  visit.required("blocks", experiment.blocks);
  if constexpr (Visitor::kReads)
    visit.later("max_blocks", experiment.max_blocks);
  else
    visit.derived("max_blocks", std::max(experiment.blocks, experiment.max_blocks));
  visit.required("timeout_s", experiment.timeout_s);
  visit.required("arms", experiment.arms);
}

}  // namespace headroom
