// Finds level shifts in a series of noisy figures, for nightly runs, which cannot be interleaved.
// E-divisive: Matteson and James 2014, J. Am. Stat. Assoc. 109:334, with Student's t-test in place
// of its permutations, as Fleming et al. 2023 (ICPE, "Hunter") do for performance figures.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace headroom {

inline constexpr double kChangePointLevel = 0.001;
// Minimum number of values in a level: one outlying night is not a level.
inline constexpr std::size_t kShortestLevel = 3;

// Distance between the distributions of `left` and `right`: the sample divergence of the energy
// distance (exponent 1), times mn/(m+n). Both must hold at least two values.
double energy_divergence(std::span<const double> left, std::span<const double> right);

// Two-sided p-value of Student's t-test for equal means (equal variances). Each side must hold at
// least one value, and both together at least three.
double t_test_p_value(std::span<const double> left, std::span<const double> right);

// Indices of the first value of each new level, ascending. Candidates are found recursively: the
// split with the largest divergence, as long as the t-test gives p < 10 level. A candidate is kept
// when p < level between its neighbouring levels; the weakest ones are removed first.
std::vector<std::size_t> change_points(std::span<const double> values,
                                       double level = kChangePointLevel);

// Compares the last level of a series with the best (lowest) earlier one.
struct LevelShift {
  // Index of the first value after the largest step between the best level and the last one. A
  // later, smaller step may be noise.
  std::size_t since = 0;
  double best = 0;  // means of the two levels
  double last = 0;
  double p = 1;  // p-value of the t-test times the number of places tried (Bonferroni)
};
// Returns nullopt when the series has one level.
std::optional<LevelShift> latest_shift(std::span<const double> values);

}  // namespace headroom
