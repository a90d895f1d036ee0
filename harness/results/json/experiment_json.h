// An experiment as run.json carries it.
#pragma once

#include "harness/plan/experiment.h"
#include "harness/results/json/cell_json.h"

namespace headroom {

Json experiment_to_json(const Experiment& experiment);
Experiment experiment_from(const Json& json);

}  // namespace headroom
