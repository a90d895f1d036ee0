// The axes of a Cell by name, as suites list them, filters match them and `-a axis=value` replaces
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/plan/cell.h"
#include "harness/plan/experiment.h"

namespace headroom {

// workload, device, rules, allocator, execution, pipeline, accumulation, checkpointing, precision,
// pruning, optimizer, inject, scenario.
const std::vector<std::string>& axis_names();

// Canonical text of one axis. Throws InputError that suggests the nearest names for an unknown
// axis.
std::string axis_value(const Cell& cell, std::string_view axis);
// Sets one axis. Throws InputError that suggests the nearest names if a name or parameter is not
// registered. Does not check whether this machine has the device.
void set_axis(Cell& cell, std::string_view axis, const std::string& value);

// Sets an empty Cell::rules to the default of the cell's device.
void resolve_rules(Cell& cell);

}  // namespace headroom
