// Combines verdicts: the points of a sweep, and the parts of a claim.
#pragma once

#include <utility>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/stats/verdict.h"

namespace headroom {

// Combines the points (sweep value, metric, experiment) at which the same figure is claimed.
// - Points that cannot be tested here decide nothing; if there are no others, that is the verdict.
// - If all points have the same verdict, that is the verdict.
// - If the claim holds at some points and surely not at others: CONDITIONAL.
// - If an undecided point could still change the verdict: INCONCLUSIVE, so that two runs can differ
// only by way of it. A point with a clear direction and an open size may yet hold.
// - If it holds nowhere and every point is decided: REFUTED if the effect is absent or opposite at
// any point, else DIRECTION-ONLY. Never CONDITIONAL, since no condition was found under which it
// holds.
ClaimVerdict combine_points(const std::vector<ClaimVerdict>& points);

// The claim's verdict is that of its number, or of its direction if no number is claimed or the
// number is undecided. A cause can only weaken it: with the stated cause refuted, REPRODUCED
// becomes CONDITIONAL, because only a part of the claim holds. A missing interface makes the claim
// ILL-POSED, because its advice cannot be followed; an existing one decides nothing. Controls never
// count.
ClaimVerdict combine_parts(const std::vector<std::pair<PartKind, ClaimVerdict>>& parts);

// Whether the data decided: not INCONCLUSIVE, NOT-TESTABLE-HERE, ILL-POSED or INVALID.
bool is_decided(ClaimVerdict verdict);

}  // namespace headroom
