// Offline planning by one pass over an order, for buffers with gaps or a fixed place. Such buffers
// can have free space below them, which the skyline of greedy.h cannot represent.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/trace/buffers.h"

namespace headroom {

// Places buffers in the given order, each as low as the fixed and earlier ones allow. Buffers with
// a fixed place stay there; the others that `order` omits get offset 0. Compares each pair of
// buffers whose lifetimes are near each other.
Offsets plan_by_first_fit(const std::vector<PlanBuffer>& buffers,
                          const std::vector<std::size_t>& order);

}  // namespace headroom
