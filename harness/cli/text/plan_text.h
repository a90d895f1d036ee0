// The answer of headroom plan, for people and for programs.
#pragma once

#include <vector>

#include "harness/whatif/advice.h"

namespace headroom {

// The allocator that the answer is about when the command line names none: PyTorch's.
inline constexpr const char* kUsualAllocator = "caching";

// `fits` differ in axes other than the allocator; at least one. Prints the answer, then `changes`,
// which make the only fit fit; `tables` adds the figures of every allocator.
void print_fits(const std::vector<Fit>& fits, const std::vector<Change>& changes, bool tables);
void print_fits_json(const std::vector<Fit>& fits, const std::vector<Change>& changes);

}  // namespace headroom
