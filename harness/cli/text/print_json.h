// What commands print with --json.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace headroom {

// One document on standard output. File names and names of ops are bytes: what of them is no UTF-8
// is replaced.
inline void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace headroom
