// Checks the values of --allocator before a framework is started with them.
#pragma once

#include <string>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

// Throws InputError for an allocator that is unknown, does not suit a device of `capacity`, or
// needs information that frameworks do not give.
void check_served_allocators(const std::vector<std::string>& allocators, Bytes capacity);

}  // namespace headroom
