// The training runs that a command line asks about, before any is run: headroom plan and search.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/cell.h"
#include "harness/plan/suite.h"

namespace headroom {

struct PlannedCells {
  std::vector<Cell> cells;       // every combination of the axes but the allocator; at least one
  std::vector<Spec> allocators;  // every strategy as it comes, where the axes name none
};

// `device` is one as everywhere or, for short, meta:CARD, CARD, meta:CAPACITY or CAPACITY. Throws
// InputError.
PlannedCells read_planned_cells(const std::string& workload, const std::string& device,
                                const AxisOverrides& axes, int steps);

// Of those that neither title nor rows name: the optimizer, and what is not as it comes.
std::string axes_beside_allocator(const Cell& cell);

}  // namespace headroom
