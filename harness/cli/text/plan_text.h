// The answer of headroom plan, for people and for programs.
#pragma once

#include <optional>
#include <vector>

#include "harness/cli/pytorch_needs.h"
#include "harness/whatif/advice.h"

namespace headroom {

// The allocator that the answer is about when the command line names none: PyTorch's.
inline constexpr const char* kUsualAllocator = "caching";

// Prints the answer for each of `fits`, which differ in axes other than the allocator and are at
// least one. `changes`, which would make the batch fit, and `pytorch` are given only for a single
// fit. `tables` adds the figures of every allocator.
void print_fits(const std::vector<Fit>& fits, const std::vector<Change>& changes,
                const std::optional<PytorchNeeds>& pytorch, bool tables);
void print_fits_json(const std::vector<Fit>& fits, const std::vector<Change>& changes,
                     const std::optional<PytorchNeeds>& pytorch);

}  // namespace headroom
