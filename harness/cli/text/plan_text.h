// The answer of headroom plan, for people and for programs.
#pragma once

#include <vector>

#include "harness/whatif/fit.h"

namespace headroom {

// `fits` differ in axes other than the allocator; at least one.
void print_fits(const std::vector<Fit>& fits);
void print_fits_json(const std::vector<Fit>& fits);

}  // namespace headroom
