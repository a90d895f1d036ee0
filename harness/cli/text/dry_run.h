// What a run would do, without doing it.
#pragma once

#include "harness/cli/run_plan.h"

namespace headroom {

void print_dry_run(const RunPlan& plan);
// The same for programs, as reports/schema.json describes it.
void print_dry_run_json(const RunPlan& plan);

}  // namespace headroom
