// What became of exact metrics between two runs, as reports/schema.json has it: for programs, and
// for the page that shows it.
#pragma once

#include <string>

#include "harness/evidence/compare_runs.h"

namespace headroom {

// Why no time is among them: a sentence.
extern const char* const kWhyNoTimes;

std::string changes_json(const RunChanges& changes);

}  // namespace headroom
