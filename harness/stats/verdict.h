// From a comparison to a word: change verdicts between two arms, claim verdicts against a
// published number.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "harness/stats/paired.h"

namespace headroom {

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
};
std::string_view to_string(ChangeVerdict verdict);  // "WORSE", "BETTER", …
std::string_view to_string(ClaimVerdict verdict);   // "REPRODUCED", …, "DIRECTION-ONLY", …

// Oriented so that a positive theta is worse. First match of the documented order.
ChangeVerdict judge_change(const Comparison& comparison, double delta);

// What a claim says about one comparison. On the same scale as theta.
struct ClaimedEffect {
  std::optional<double> value;  // θ*; absent: only a direction is claimed
  int direction = 0;            // −1 or +1
  double tolerance = 0;         // τ ≤ |θ*|/2
  double delta = 0;             // effects inside ±δ count as none
};
ClaimVerdict judge_claim(const Comparison& comparison, const ClaimedEffect& claimed);

}  // namespace headroom
