// The machine and the program of a run as run.json carries them.
#pragma once

#include "harness/results/json/cell_json.h"
#include "harness/results/run_info.h"

namespace headroom {

Json machine_to_json(const MachineInfo& machine);
MachineInfo machine_from(const Json& json);

Json build_to_json(const BuildInfo& build);
BuildInfo build_from(const Json& json);

}  // namespace headroom
