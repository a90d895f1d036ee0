// The axes of a Cell by name: what suites list, filters match and `-a axis=value` replaces.
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

// Canonical text of one axis. Throws InputError with the nearest names for an unknown axis.
std::string axis_value(const Cell& cell, std::string_view axis);
// Checks names and parameters against what is registered and throws InputError with the nearest
// ones. Whether this machine has the device is another question.
void set_axis(Cell& cell, std::string_view axis, const std::string& value);

// Fills Cell::rules where it is empty with the default of the cell's device.
void resolve_rules(Cell& cell);

}  // namespace headroom
