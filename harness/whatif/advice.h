// Which changes to a cell would make its batch fit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/whatif/fit.h"

namespace headroom {

struct Change {
  std::vector<std::pair<std::string, std::string>> axes;  // axis and its new value
  Fit fit;                                                // under one allocator, with that change
};

// Simulates `cell` with each of a few common changes, alone and together, and returns those under
// which the batch fits, in the order tried. Axes that `cell` already sets keep their value. Throws
// as find_fit().
std::vector<Change> changes_that_fit(const Cell& cell, const Spec& allocator);

}  // namespace headroom
