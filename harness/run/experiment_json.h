// An experiment as run.json carries it.
#pragma once

#include "harness/run/cell_json.h"
#include "harness/run/experiment.h"

namespace headroom {

Json experiment_to_json(const Experiment& experiment);
Experiment experiment_from(const Json& json);

}  // namespace headroom
