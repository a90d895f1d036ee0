#include "harness/stats/paired.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "harness/base/error.h"
#include "harness/stats/distributions.h"
#include "harness/stats/multiplicity.h"

namespace headroom::paired_test {
namespace {

// Hamilton depression scale factor IV of nine patients, second visit minus first: Hollander and
// Wolfe, "Nonparametric Statistical Methods", table 3.1; R's wilcox.test uses the same data.
const std::vector<double> kDepression = {0.878 - 1.83, 0.647 - 0.50, 0.598 - 1.62,
                                         2.05 - 2.48,  1.06 - 1.68,  1.29 - 1.88,
                                         1.06 - 1.55,  3.14 - 3.06,  1.29 - 1.30};

std::vector<double> random_differences(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal(0.1, 1);
  std::vector<double> differences(n);
  for (double& d : differences) d = normal(generator);
  return differences;
}

TEST(Paired, gives_the_estimate_and_the_interval_of_the_textbook_example) {
  EXPECT_NEAR(hodges_lehmann(kDepression), -0.46, 1e-12);
  const Interval interval = signed_rank_interval(kDepression, 0.961 - 1e-3);
  EXPECT_NEAR(interval.low, -0.786, 1e-12);
  EXPECT_NEAR(interval.high, -0.010, 1e-12);
  EXPECT_NEAR(signed_rank_p_value(kDepression), 2 * 0.01953125, 1e-12);
}

TEST(Paired, has_the_critical_values_of_the_published_table) {
  // Two-sided 0.05: Hollander and Wolfe, table A.4, in the form of most textbooks.
  const std::vector<std::pair<std::size_t, long>> table = {
      {6, 0}, {7, 2}, {8, 3}, {9, 5}, {10, 8}, {12, 13}, {15, 25}, {20, 52}, {25, 89}, {30, 137}};
  for (const auto& [n, critical] : table) {
    EXPECT_LE(signed_rank_cdf(n, critical), 0.025) << n;
    EXPECT_GT(signed_rank_cdf(n, critical + 1), 0.025) << n;
  }
}

TEST(Paired, has_no_finite_interval_before_the_level_can_be_reached) {
  EXPECT_TRUE(std::isinf(signed_rank_interval({1, 2, 3, 4, 5}, 0.95).low));
  EXPECT_EQ(signed_rank_interval({1, 2, 3, 4, 5, 6}, 0.95).low, 1);
}

TEST(Paired, leaves_zero_out_of_the_interval_exactly_when_p_is_below_alpha) {
  const std::uint64_t seed = std::random_device{}();
  for (std::uint64_t round = 0; round < 200; ++round) {
    auto differences = random_differences(6 + round % 15, seed + round);
    if (round % 3 == 0) differences[0] = 0;
    if (round % 5 == 0) differences[1] = -differences[2];
    const Interval interval = signed_rank_interval(differences, 0.95);
    const bool excludes_zero = interval.low > 0 || interval.high < 0;
    EXPECT_EQ(signed_rank_p_value(differences) <= 0.05, excludes_zero)
        << "seed " << seed << " round " << round;
  }
}

TEST(Paired, turns_the_sign_when_the_arms_are_exchanged) {
  const std::uint64_t seed = std::random_device{}();
  const auto forward = random_differences(11, seed);
  auto backward = forward;
  for (double& d : backward) d = -d;
  const Comparison a = compare_pairs(forward, 0);
  const Comparison b = compare_pairs(backward, 0);
  EXPECT_DOUBLE_EQ(a.theta, -b.theta) << "seed " << seed;
  EXPECT_DOUBLE_EQ(a.ci95.low, -b.ci95.high) << "seed " << seed;
  EXPECT_DOUBLE_EQ(a.ci90.high, -b.ci90.low) << "seed " << seed;
  EXPECT_DOUBLE_EQ(a.p, b.p) << "seed " << seed;
}

TEST(Paired, does_not_depend_on_the_order_of_the_pairs) {
  const std::uint64_t seed = std::random_device{}();
  auto differences = random_differences(12, seed);
  const Comparison before = compare_pairs(differences, 0);
  std::shuffle(differences.begin(), differences.end(), std::mt19937_64(seed));
  const Comparison after = compare_pairs(differences, 0);
  EXPECT_DOUBLE_EQ(before.theta, after.theta) << "seed " << seed;
  EXPECT_DOUBLE_EQ(before.ci95.low, after.ci95.low) << "seed " << seed;
}

TEST(Paired, widens_the_interval_at_a_corrected_level) {
  const auto differences = random_differences(12, 1);
  const Comparison plain = compare_pairs(differences, 0);
  const Comparison corrected = compare_pairs(differences, 0, 0.05 / 8);
  EXPECT_LT(corrected.ci95.low, plain.ci95.low);
  EXPECT_GT(corrected.ci95.high, plain.ci95.high);
  EXPECT_EQ(corrected.p, plain.p);
}

TEST(Paired, gives_the_mean_an_interval_by_students_quantiles) {
  const Interval interval = mean_interval({1, 2, 3}, 0.95);
  EXPECT_NEAR(interval.low, 2 - 4.302653 / std::sqrt(3), 1e-6);
  EXPECT_NEAR(interval.high, 2 + 4.302653 / std::sqrt(3), 1e-6);
  EXPECT_TRUE(std::isinf(mean_interval({1}, 0.95).high)) << "one value has no dispersion";
}

TEST(Paired, refuses_an_empty_sample) { EXPECT_THROW(hodges_lehmann({}), Error); }

TEST(Paired, states_the_minimum_detectable_effect_with_t_quantiles) {
  // t(0.975, 9) and t(0.8, 9) from standard tables.
  EXPECT_NEAR(student_t_quantile(0.975, 9), 2.262, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.8, 9), 0.883, 5e-4);
  const std::vector<double> differences = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
  const double sd = std::sqrt(10.0 / 9.0);
  EXPECT_NEAR(compare_pairs(differences, 0).mde, (2.262 + 0.883) * sd / std::sqrt(10.0), 1e-3);
}

TEST(Paired, asks_for_more_pairs_the_smaller_the_effect_and_never_for_fewer_than_the_pilot) {
  const auto pilot = random_differences(10, 7);
  EXPECT_EQ(pairs_needed(pilot, 100.0), 10u);
  const double at_half = static_cast<double>(pairs_needed(pilot, 0.05));
  const double at_full = static_cast<double>(pairs_needed(pilot, 0.1));
  EXPECT_NEAR(at_half / at_full, 4.0, 0.01);
}

TEST(Paired, wants_a_pilot_that_could_be_significant_at_the_corrected_level) {
  EXPECT_EQ(pilot_pairs(0.05), 10u);
  const double corrected = 0.05 / 100;
  const std::size_t pilot = pilot_pairs(corrected);
  EXPECT_GT(pilot, 10u);
  EXPECT_LE(2 * signed_rank_cdf(pilot, 0), corrected);
  EXPECT_GT(2 * signed_rank_cdf(pilot - 1, 0), corrected);
}

TEST(Multiplicity, adjusts_as_the_papers_do) {
  const std::vector<double> p = {0.01, 0.04, 0.03, 0.005};
  const std::vector<double> holm = {0.03, 0.06, 0.06, 0.02};
  const std::vector<double> bh = {0.02, 0.04, 0.04, 0.02};
  for (std::size_t i = 0; i < p.size(); ++i) {
    EXPECT_NEAR(holm_adjusted(p)[i], holm[i], 1e-12);
    EXPECT_NEAR(benjamini_hochberg_adjusted(p)[i], bh[i], 1e-12);
  }
}

TEST(Multiplicity, gives_holms_levels_in_step_with_the_adjusted_p_values) {
  const std::vector<double> p = {0.01, 0.04, 0.03, 0.005};
  const auto levels = holm_levels(p, 0.05);
  EXPECT_NEAR(levels[3], 0.05 / 4, 1e-12);
  EXPECT_NEAR(levels[0], 0.05 / 3, 1e-12);
  EXPECT_NEAR(levels[2], 0.05 / 2, 1e-12);
  EXPECT_NEAR(levels[1], 0.05 / 2, 1e-12) << "0.03 was not rejected: the next shares its level";
}

TEST(Distributions, count_the_upper_tail_of_a_binomial_from_its_own_value_on) {
  EXPECT_NEAR(binomial_upper_tail(3, 0.5, 2), 0.5, 1e-12);
  EXPECT_EQ(binomial_upper_tail(3, 0.5, 0), 1);
  EXPECT_EQ(binomial_upper_tail(3, 0.5, 4), 0);
}

}  // namespace
}  // namespace headroom::paired_test
