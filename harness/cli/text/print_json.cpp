#include "harness/cli/text/print_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace headroom {

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace headroom
