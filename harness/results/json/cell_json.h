// The JSON of a Cell in result files, shared by the code that writes samples and runs.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "harness/plan/cell.h"

namespace headroom {

using Json = nlohmann::ordered_json;

// `batch` is the batch size of workloads that do not have it as a parameter.
Json cell_to_json(const Cell& cell, std::int64_t batch);
Cell cell_from_json(const Json& json);

// Files hold null in place of NaN and infinity.
inline Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// Files hold null in place of a text that is not there.
inline Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

template <typename Value>
Json value_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

template <typename Value>
std::optional<Value> optional_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<Value>();
}

}  // namespace headroom
