// Paired statistics on differences d_i: Hodges–Lehmann with exact signed-rank intervals.
// Source of the rules: Hollander, Wolfe, Chicken, "Nonparametric Statistical Methods", ch. 3.
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
double hodges_lehmann(std::vector<double> differences);

// [W_(k+1), W_(M−k)], k = max{k : P(T⁺ ≤ k) ≤ α/2} under H0, exact for n ≤ 60. An infinite
// interval when n is too small for the level.
Interval signed_rank_interval(std::vector<double> differences, double level);

// Two-sided exact p-value of T⁺ for H0: median = 0, from the same distribution.
double signed_rank_p_value(std::vector<double> differences);

// P(T⁺ ≤ k) for n pairs.
double signed_rank_cdf(std::size_t n, long k);

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

Comparison compare_pairs(const std::vector<double>& differences, std::size_t excluded);

}  // namespace headroom
