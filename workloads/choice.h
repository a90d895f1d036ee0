// Parameters of workloads with a fixed set of values, or a lower bound.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>

#include "harness/base/error.h"
#include "harness/base/spec.h"

namespace headroom {

// Returns the choice whose name is the spec's value of `key`. Throws InputError that lists the
// names.
template <typename Choice>
Choice chosen(const Spec& spec, const std::string& key, const std::string& otherwise,
              const std::map<std::string, Choice>& choices) {
  const std::string value = spec.text(key, otherwise);
  const auto found = choices.find(value);
  if (found != choices.end()) return found->second;
  std::string known;
  for (const auto& [name, choice] : choices) known += (known.empty() ? "" : ", ") + name;
  throw InputError(fmt::format("{}: {} '{}' does not exist; take one of {}", spec.to_string(), key,
                               value, known));
}

struct LeastValue {
  const char* key;
  std::int64_t value;
  std::int64_t least;
};

// Throws InputError for unrealistic numbers of layers, because each takes time and memory to plan.
inline void require_buildable(const Spec& spec, std::int64_t layers) {
  constexpr std::int64_t kMostLayers = 10'000;
  if (layers > kMostLayers)
    throw InputError(fmt::format("{}: layers is {}, but must be at most {}", spec.to_string(),
                                 layers, kMostLayers));
}

// Throws InputError for the first value below its lower bound.
inline void require_at_least(const Spec& spec, std::initializer_list<LeastValue> values) {
  for (const auto& [key, value, least] : values)
    if (value < least)
      throw InputError(fmt::format("{}: {} is {}, but must be at least {}", spec.to_string(), key,
                                   value, least));
}

}  // namespace headroom
