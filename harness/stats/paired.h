// Paired statistics on differences d_i: Hodges–Lehmann estimates with exact signed-rank intervals.
// Source: Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", ch. 3.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headroom {

struct Interval {
  double low = 0;
  double high = 0;
};

// Median of the Walsh averages (d_i + d_j) / 2, i ≤ j. Throws Error on an empty sample.
double hodges_lehmann(const std::vector<double>& differences);

// [W_(k+1), W_(M−k)], k = max{k : P(T⁺ ≤ k) ≤ α/2} under H0, exact for n ≤ 60. The interval is
// infinite when n is too small for the level.
Interval signed_rank_interval(const std::vector<double>& differences, double level);

// Two-sided exact p-value for H0: median = 0, consistent with the interval: p ≤ α exactly when the
// interval at level 1 − α excludes 0. Ties and zeros count against significance.
double signed_rank_p_value(const std::vector<double>& differences);

// P(T⁺ ≤ k) for n pairs.
double signed_rank_cdf(std::size_t n, long k);

// Student's interval of the mean. Unlike a median it moves with values that are rare and large. The
// interval is infinite for fewer than two values.
Interval mean_interval(const std::vector<double>& values, double level);

struct Comparison {
  double theta = 0;
  Interval ci90;
  Interval ci95;
  std::size_t pairs = 0;
  std::size_t excluded_pairs = 0;
  double sd = 0;
  double mde = 0;  // minimum detectable effect, (t_{1−α/2}+t_{0.8})·s_d/√n
  double p = 1;
  bool exact = false;  // integers compared as integers, n = 1
};

// An `alpha` below 0.05 is corrected for multiple comparisons: ci95 is then the interval at 1 −
// alpha and ci90 the one at 1 − 2·alpha.
Comparison compare_pairs(const std::vector<double>& differences, std::size_t excluded,
                         double alpha = 0.05);

// Compares two exactly known values: the result has no interval.
Comparison compare_exact(double difference);

// The minimum number of pilot pairs: max(10, ⌈1 + log₂(1/α)⌉). With fewer pairs than the second
// term, no result could be significant at α.
std::size_t pilot_pairs(double alpha);

// Number of pairs that a two-stage design needs after this pilot to decide an effect of `delta`:
// max(n₀, ⌈(t_{1−α,n₀−1}·s₀/(δ/2))²⌉), where s₀ is the 20 % winsorised standard deviation / 0.6.
// The pilot must hold at least two pairs.
std::size_t pairs_needed(const std::vector<double>& pilot, double delta, double alpha = 0.05);

}  // namespace headroom
