// Checks whether a recorded run can be resumed: samples of two programs, plans or machines must not
// be mixed.
#pragma once

#include <filesystem>

#include "harness/cli/run_plan.h"
#include "harness/results/run_info.h"

namespace headroom {

// The options with which the run in directory `run` began.
RunOptions original_options(const RunInfo& info, const std::filesystem::path& run);

// Throws InputError that says what has changed since the run began.
void require_same_run(const RunInfo& info, const RunPlan& plan_now);

}  // namespace headroom
