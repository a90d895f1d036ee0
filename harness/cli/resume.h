// May a recorded run be gone on with? Samples of two programs, plans or machines do not mix.
#pragma once

#include <filesystem>

#include "harness/cli/run_plan.h"
#include "harness/results/run_info.h"

namespace headroom {

// What was asked when the run in directory `run` began.
RunOptions original_options(const RunInfo& info, const std::filesystem::path& run);

// Throws InputError that says what has changed since.
void require_same_run(const RunInfo& info, const RunPlan& plan_now);

}  // namespace headroom
