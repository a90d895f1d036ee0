// Reports the first request that failed, and the smallest capacity that serves all, for people and
// for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "harness/whatif/replay.h"
#include "harness/whatif/viable_capacity.h"

namespace headroom {

// "request 3 (weight) of 1.00 MiB could not be served.\n  …", with a newline at the end.
std::string failure_text(const ReplayFailure& failure);
nlohmann::ordered_json to_json(const ReplayFailure& failure);
// The smallest capacity, holes below it and the grid, as fields of `json`.
void add_capacity(nlohmann::ordered_json& json, const ViableCapacity& viable);

}  // namespace headroom
