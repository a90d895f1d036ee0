// headroom run --against: two builds of the program in one run, back to back, so that times may be
// compared.
#pragma once

#include <filesystem>

#include "harness/cli/run_plan.h"

namespace headroom {

// Every arm of every comparison becomes an experiment of its own with the arms "before", which
// `program` runs, and "after". Controls stay, claims go: they ask about strategies, not builds.
// Throws InputError when that is no program.
void pair_with(RunPlan& plan, const std::filesystem::path& program);

// Prints the cells of a judged run whose "after" is worse than "before", or has no result where
// that has one. Whether there are any.
bool tell_what_is_worse(const std::filesystem::path& run);

}  // namespace headroom
