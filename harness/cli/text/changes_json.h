// Changes of exact metrics between two runs as JSON (reports/schema.json), for programs and for the
// page that shows them.
#pragma once

#include <string>

#include "harness/evidence/compare_runs.h"

namespace headroom {

// A sentence that says why times are not included.
extern const char* const kWhyNoTimes;

std::string changes_json(const RunChanges& changes);

}  // namespace headroom
