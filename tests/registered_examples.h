// What tests of every plug-in of a kind go over.
#pragma once

#include <string>
#include <vector>

#include "harness/base/registry.h"

namespace headroom {

// Every example of every registered Plugin.
template <typename Plugin>
std::vector<std::string> registered_examples() {
  std::vector<std::string> examples;
  for (const auto& [name, plugin] : Registry<Plugin>::instance().all())
    examples.insert(examples.end(), plugin.examples.begin(), plugin.examples.end());
  return examples;
}

}  // namespace headroom
