// Turns comparisons into verdicts: change verdicts between two configurations, claim verdicts
// against a published number.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/stats/paired.h"

namespace headroom {

// Margins fixed in advance: a ratio within 1 ± margin counts as no difference.
inline constexpr double kExactMargin = 0.01;
inline constexpr double kNoisyMargin = 0.03;

enum class ChangeVerdict { worse, better, same, small, direction, inconclusive };
enum class ClaimVerdict {
  reproduced,
  weaker,
  stronger,
  direction_only,
  refuted,
  conditional,
  inconclusive,
  not_testable_here,
  ill_posed,
  invalid,  // the strategy did not do what its name says
};
std::string_view to_string(ChangeVerdict verdict);  // "WORSE", "BETTER", …
std::string_view to_string(ClaimVerdict verdict);   // "REPRODUCED", …, "DIRECTION-ONLY", …

// A positive theta is worse. The first match is returned: WORSE/BETTER (95 % interval wholly beyond
// ±δ), SMALL (it excludes 0 and lies inside ±δ), SAME (90 % interval inside ±δ), DIRECTION
// (excludes 0), INCONCLUSIVE. SMALL precedes SAME because the 90 % interval lies within the 95 %
// one, so SMALL could never be reached after SAME.
ChangeVerdict judge_change(const Comparison& comparison, double delta);

// The effect that a claim states for one comparison, on the same scale as theta.
struct ClaimedEffect {
  std::optional<double> value;  // θ*; absent: the claim states only a direction
  int direction = 0;            // −1 or +1
  double tolerance = 0;         // τ ≤ |θ*|/2
  double delta = 0;             // effects inside ±δ count as none
};
// The first match is returned: REPRODUCED (90 % interval inside θ* ± τ, or, without a value, 95 %
// interval beyond δ in the claimed direction); WEAKER/STRONGER (95 % interval beyond δ and outside
// θ* ± τ); DIRECTION-ONLY (beyond δ); REFUTED (90 % interval inside ±δ, or 95 % interval beyond δ
// in the other direction); INCONCLUSIVE.
ClaimVerdict judge_claim(const Comparison& comparison, const ClaimedEffect& claimed);

// Claims of "at least x" or "at most x", judged by one-sided 95 % bounds, which are the ends of the
// 90 % interval: REPRODUCED or REFUTED when the interval lies wholly on one side, else
// INCONCLUSIVE.
struct ClaimedBound {
  std::optional<double> at_least;
  std::optional<double> at_most;
};
ClaimVerdict judge_bound(const Comparison& value, const ClaimedBound& claimed);

}  // namespace headroom
