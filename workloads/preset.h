// preset=tiny|small|paper: values for a workload's parameters; the user's own values take
// precedence. tiny is for tests, small for a laptop, paper is the published configuration.
#pragma once

#include <map>
#include <string>

#include "workloads/choice.h"

namespace headroom {

using Presets = std::map<std::string, std::map<std::string, std::string>>;

// Returns the spec with its preset's values for parameters that it does not set itself. Throws
// InputError that lists the presets.
inline Spec with_preset(Spec spec, const Presets& presets) {
  if (!spec.has("preset")) return spec;
  for (const auto& [key, value] : chosen(spec, "preset", "", presets))
    if (!spec.has(key)) spec.set(key, value);
  return spec;
}

}  // namespace headroom
