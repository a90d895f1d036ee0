#include "harness/stats/verdict.h"

#include <cmath>

namespace headroom {
namespace {

bool inside(const Interval& interval, double low, double high) {
  return interval.low >= low && interval.high <= high;
}

Interval oriented(const Interval& interval, int direction) {
  return direction < 0 ? Interval{-interval.high, -interval.low} : interval;
}

}  // namespace

std::string_view to_string(ChangeVerdict verdict) {
  switch (verdict) {
    case ChangeVerdict::worse:
      return "WORSE";
    case ChangeVerdict::better:
      return "BETTER";
    case ChangeVerdict::same:
      return "SAME";
    case ChangeVerdict::small:
      return "SMALL";
    case ChangeVerdict::direction:
      return "DIRECTION";
    case ChangeVerdict::inconclusive:
      break;
  }
  return "INCONCLUSIVE";
}

std::string_view to_string(ClaimVerdict verdict) {
  switch (verdict) {
    case ClaimVerdict::reproduced:
      return "REPRODUCED";
    case ClaimVerdict::weaker:
      return "WEAKER";
    case ClaimVerdict::stronger:
      return "STRONGER";
    case ClaimVerdict::direction_only:
      return "DIRECTION-ONLY";
    case ClaimVerdict::refuted:
      return "REFUTED";
    case ClaimVerdict::conditional:
      return "CONDITIONAL";
    case ClaimVerdict::not_testable_here:
      return "NOT-TESTABLE-HERE";
    case ClaimVerdict::ill_posed:
      return "ILL-POSED";
    case ClaimVerdict::invalid:
      return "INVALID";
    case ClaimVerdict::inconclusive:
      break;
  }
  return "INCONCLUSIVE";
}

ChangeVerdict judge_change(const Comparison& comparison, double delta) {
  const auto& [low, high] = comparison.ci95;
  const bool excludes_zero = low > 0 || high < 0;
  if (low > delta) return ChangeVerdict::worse;
  if (high < -delta) return ChangeVerdict::better;
  if (excludes_zero && inside(comparison.ci95, -delta, delta)) return ChangeVerdict::small;
  if (inside(comparison.ci90, -delta, delta)) return ChangeVerdict::same;
  return excludes_zero ? ChangeVerdict::direction : ChangeVerdict::inconclusive;
}

ClaimVerdict judge_claim(const Comparison& comparison, const ClaimedEffect& claimed) {
  const int direction = claimed.value ? (*claimed.value < 0 ? -1 : 1) : claimed.direction;
  const Interval ci90 = oriented(comparison.ci90, direction);
  const Interval ci95 = oriented(comparison.ci95, direction);
  const bool beyond = ci95.low > claimed.delta;
  if (claimed.value) {
    const double low = std::abs(*claimed.value) - claimed.tolerance;
    const double high = std::abs(*claimed.value) + claimed.tolerance;
    if (inside(ci90, low, high)) return ClaimVerdict::reproduced;
    if (beyond && ci95.high < low) return ClaimVerdict::weaker;
    if (beyond && ci95.low > high) return ClaimVerdict::stronger;
    if (beyond) return ClaimVerdict::direction_only;
  } else if (beyond) {
    return ClaimVerdict::reproduced;
  }
  const bool none = inside(ci90, -claimed.delta, claimed.delta);
  const bool opposite = ci95.high < -claimed.delta;
  return none || opposite ? ClaimVerdict::refuted : ClaimVerdict::inconclusive;
}

ClaimVerdict judge_bound(const Comparison& value, const ClaimedBound& claimed) {
  const auto& [low, high] = value.ci90;
  const bool holds = (!claimed.at_least || low >= *claimed.at_least) &&
                     (!claimed.at_most || high <= *claimed.at_most);
  if (holds) return ClaimVerdict::reproduced;
  const bool fails =
      (claimed.at_least && high < *claimed.at_least) || (claimed.at_most && low > *claimed.at_most);
  return fails ? ClaimVerdict::refuted : ClaimVerdict::inconclusive;
}

}  // namespace headroom
