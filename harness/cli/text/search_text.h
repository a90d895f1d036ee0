// The result of headroom search, for people and for programs.
#pragma once

#include <vector>

#include "harness/whatif/memory_search.h"

namespace headroom {

// `searches` differ in axes other than the allocator; at least one.
void print_searches(const std::vector<MemorySearch>& searches);
void print_searches_json(const std::vector<MemorySearch>& searches);

}  // namespace headroom
