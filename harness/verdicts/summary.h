// What a reader should know first: one sentence, and where the data contradict the sources most.
#pragma once

#include <string>
#include <vector>

#include "harness/verdicts/judgement.h"
#include "harness/verdicts/matrix.h"

namespace headroom {

std::string headline_of(const std::vector<ClaimJudgement>& claims,
                        const std::vector<MatrixEntry>& matrix);

// Largest disagreements between claimed and measured, at most `limit`, one per part.
std::vector<std::string> surprises_of(const std::vector<ClaimJudgement>& claims,
                                      std::size_t limit = 3);

}  // namespace headroom
