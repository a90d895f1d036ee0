// The answer of headroom plan, for people and for programs.
#pragma once

#include <optional>
#include <vector>

#include "harness/cli/pytorch_needs.h"
#include "harness/whatif/advice.h"

namespace headroom {

// The allocator that the answer is about when the command line names none: PyTorch's.
inline constexpr const char* kUsualAllocator = "caching";

// `fits` differ in axes other than the allocator; at least one. Prints the answer, then `changes`,
// which make the only fit fit; `pytorch` is about that fit, too. `tables` adds the figures of every
// allocator.
void print_fits(const std::vector<Fit>& fits, const std::vector<Change>& changes,
                const std::optional<PytorchNeeds>& pytorch, bool tables);
void print_fits_json(const std::vector<Fit>& fits, const std::vector<Change>& changes,
                     const std::optional<PytorchNeeds>& pytorch);

}  // namespace headroom
