// The cells that a command line of headroom plan or search asks about.
#pragma once

#include <string>
#include <vector>

#include "harness/plan/cell.h"
#include "harness/plan/suite.h"

namespace headroom {

struct PlannedCells {
  std::vector<Cell> cells;       // every combination of the axes but the allocator; at least one
  std::vector<Spec> allocators;  // all strategies with default parameters if the axes name none
};

// `device` is a device spec or a short form: meta:CARD, CARD, meta:CAPACITY or CAPACITY. Throws
// InputError.
PlannedCells read_planned_cells(const std::string& workload, const std::string& device,
                                const AxisOverrides& axes, int steps);

// Names the axes that neither title nor rows show: the optimizer, and those not at their default.
std::string axes_beside_allocator(const Cell& cell);

}  // namespace headroom
