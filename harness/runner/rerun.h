// Plans new blocks for experiments of a judged run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/results/run_info.h"
#include "harness/results/sample.h"

namespace headroom {

// Parses "inconclusive" or "failed". Throws InputError.
AddedFor parse_added_for(const std::string& text);

// Returns the blocks to add to `recorded`, whose verdicts are `verdicts_json`.
// AddedFor::inconclusive adds the planned number of blocks to every experiment with a noisy
// comparison that more pairs may decide; AddedFor::failed adds one block for each block that has a
// sample without a result. Block numbers continue those recorded.
std::vector<Addition> additions_for(AddedFor reason, const RunInfo& info,
                                    const std::vector<Sample>& recorded,
                                    const std::string& verdicts_json);

}  // namespace headroom
