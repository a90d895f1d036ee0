// The numbers with which training begins.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/program/value.h"

namespace headroom {

// Returns the value's contents before the first step, plain and row-major. They depend only on
// `seed` and the value itself.
std::vector<std::byte> initial_contents(const Value& value, std::uint64_t seed);

}  // namespace headroom
