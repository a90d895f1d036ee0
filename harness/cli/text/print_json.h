// Prints the output of --json.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace headroom {

// Prints one document on standard output. File names and op names are bytes: invalid UTF-8 in them
// is replaced.
void print_json(const nlohmann::ordered_json& json);

}  // namespace headroom
