// Prints the output of --json.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace headroom {

// Prints one document on standard output. File names and op names are bytes: invalid UTF-8 in them
// is replaced.
inline void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace headroom
