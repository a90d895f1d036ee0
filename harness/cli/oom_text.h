// The request that found no room, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/run/replay.h"

namespace headroom {

// "request 3 (weight) of 1.00 MiB found no room.\n  …", with a newline at the end.
std::string failure_text(const ReplayFailure& failure);
nlohmann::ordered_json to_json(const ReplayFailure& failure);

}  // namespace headroom
