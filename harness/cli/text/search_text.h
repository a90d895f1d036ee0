// The result of headroom search, for people and for programs.
#pragma once

#include <vector>

#include "harness/whatif/memory_search.h"

namespace headroom {

// `searches` has at least one entry; the entries differ in axes other than the allocator.
void print_searches(const std::vector<MemorySearch>& searches);
void print_searches_json(const std::vector<MemorySearch>& searches);

}  // namespace headroom
