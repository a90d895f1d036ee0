// headroom run --against: measures two builds of the program back to back in one run, so that times
// are comparable.
#pragma once

#include <filesystem>

#include "harness/cli/run_plan.h"

namespace headroom {

// Turns every configuration of every comparison into a separate experiment that compares "before",
// run by `program`, with "after". Keeps controls and drops claims, which are about strategies and
// not builds. Throws InputError when `program` cannot be run.
void pair_with(RunPlan& plan, const std::filesystem::path& program);

// Prints the cells of a judged run whose "after" is worse than "before", or has no result although
// "before" has one. Returns whether there are any.
bool tell_what_is_worse(const std::filesystem::path& run);

}  // namespace headroom
