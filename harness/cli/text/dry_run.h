// Prints what a run would do, without running it.
#pragma once

#include "harness/cli/run_plan.h"

namespace headroom {

void print_dry_run(const RunPlan& plan);
// Prints the same as JSON (reports/schema.json).
void print_dry_run_json(const RunPlan& plan);

}  // namespace headroom
