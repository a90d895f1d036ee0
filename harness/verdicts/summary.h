// The summary: one headline sentence, and the largest contradictions between the data and the
// sources.
#pragma once

#include <string>
#include <vector>

#include "harness/verdicts/judgement.h"
#include "harness/verdicts/matrix.h"

namespace headroom {

std::string headline_of(const std::vector<ClaimJudgement>& claims,
                        const std::vector<MatrixEntry>& matrix);

// The largest disagreements between claimed and measured figures: at most `limit`, one per part.
std::vector<std::string> surprises_of(const std::vector<ClaimJudgement>& claims,
                                      std::size_t limit = 3);

}  // namespace headroom
