// Where a series of noisy figures changes its level, for nights that cannot be interleaved.
// E-divisive: Matteson and James 2014, J. Am. Stat. Assoc. 109:334, with Student's t-test in place
// of its permutations, as Fleming et al. 2023 (ICPE, "Hunter") do for performance figures.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace headroom {

inline constexpr double kChangePointLevel = 0.001;
// Values a level takes: one odd night is no level.
inline constexpr std::size_t kShortestLevel = 3;

// How far the distributions of `left` and `right` lie apart: the sample divergence of the energy
// distance between them (exponent 1), times mn/(m+n). Both hold two values or more.
double energy_divergence(std::span<const double> left, std::span<const double> right);

// Two-sided p-value of Student's t-test for equal means (equal variances). Both hold a value or
// more, and three together.
double t_test_p_value(std::span<const double> left, std::span<const double> right);

// Indices of the first values of new levels, ascending. Candidates: where the divergence is
// largest, as long as the t-test says p < 10 level; then within either side. Those stay that have p
// < level between the levels beside them, the weakest going first.
std::vector<std::size_t> change_points(std::span<const double> values,
                                       double level = kChangePointLevel);

// The last level of a series against the best (lowest) one before it.
struct LevelShift {
  std::size_t since = 0;  // index of the last level's first value
  double best = 0;        // means of the two levels
  double last = 0;
  double p = 1;  // that of the t-test times the number of places tried (Bonferroni)
};
// Nothing where the series has one level.
std::optional<LevelShift> latest_shift(std::span<const double> values);

}  // namespace headroom
