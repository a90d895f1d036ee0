// Fresh blocks for experiments of a run that has been judged.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/results/run_info.h"
#include "harness/results/sample.h"

namespace headroom {

// "inconclusive" or "failed". Throws InputError.
AddedFor parse_added_for(const std::string& text);

// What to add to `recorded`, whose verdicts are `verdicts_json`: as many blocks as were planned for
// every experiment with a noisy comparison that more pairs may decide, or as many as have a sample
// without a result. Numbers follow those recorded.
std::vector<Addition> additions_for(AddedFor reason, const RunInfo& info,
                                    const std::vector<Sample>& recorded,
                                    const std::string& verdicts_json);

}  // namespace headroom
