// preset=tiny|small|paper: values for a workload's parameters, which the user's own go before.
// tiny is for tests, small for a laptop, paper is what the publication trained.
#pragma once

#include <map>
#include <string>

#include "workloads/choice.h"

namespace headroom {

using Presets = std::map<std::string, std::map<std::string, std::string>>;

// The spec with what its preset says of parameters that it does not name itself. Throws InputError
// that lists the presets.
inline Spec with_preset(Spec spec, const Presets& presets) {
  if (!spec.has("preset")) return spec;
  for (const auto& [key, value] : chosen(spec, "preset", "", presets))
    if (!spec.has(key)) spec.set(key, value);
  return spec;
}

}  // namespace headroom
