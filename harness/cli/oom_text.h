// The request that found no room, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/run/replay.h"

namespace headroom {

void print_failure(const Spec& allocator, const ReplayFailure& failure);
nlohmann::ordered_json to_json(const ReplayFailure& failure);

}  // namespace headroom
