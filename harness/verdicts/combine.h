// One word from several: the points of a sweep, and the parts of a claim.
#pragma once

#include <utility>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/stats/verdict.h"

namespace headroom {

// Points are (sweep value, metric, experiment) where the same figure is claimed.
// - Points that cannot be tested here decide nothing; with nothing else, that is the word.
// - One word everywhere: that word.
// - It holds somewhere and surely not elsewhere: CONDITIONAL.
// - Whatever an undecided point could still change is INCONCLUSIVE, so that two runs differ by way
//   of it alone. A point whose direction shows and whose size does not may yet hold.
// - It holds nowhere and every point is decided: REFUTED if the effect is absent or opposite at
//   one of them, else DIRECTION-ONLY. Never CONDITIONAL: a condition nobody has seen is none.
ClaimVerdict combine_points(const std::vector<ClaimVerdict>& points);

// The claim's word is that of its number, or of its direction where no number is claimed or the
// number stays open. A cause only takes away: with the stated cause refuted, an effect that is
// REPRODUCED becomes CONDITIONAL, for a part of the claim holds and a part does not. An interface
// that is not there makes the claim ILL-POSED: nobody can do as it says. One that is there decides
// nothing. Controls never count.
ClaimVerdict combine_parts(const std::vector<std::pair<PartKind, ClaimVerdict>>& parts);

// Whether the data said something: not INCONCLUSIVE, NOT-TESTABLE-HERE, ILL-POSED, INVALID.
bool is_decided(ClaimVerdict verdict);

}  // namespace headroom
