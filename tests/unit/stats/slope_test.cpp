#include "harness/stats/slope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "harness/base/error.h"

namespace headroom::slope_test {
namespace {

class Slope : public ::testing::Test {
 protected:
  Series random_series(std::size_t n) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> gap(0.1, 2);
    Series series;
    double at = normal(random_);
    for (std::size_t i = 0; i < n; ++i) {
      at += gap(random_);
      series.at.push_back(at);
      series.values.push_back(0.3 * at + normal(random_));
    }
    return series;
  }

  const std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
};

long discordant_pairs(const std::vector<double>& values) {
  long count = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = i + 1; j < values.size(); ++j) count += values[j] < values[i] ? 1 : 0;
  return count;
}

TEST_F(Slope, has_the_distribution_of_discordant_pairs_that_all_orders_have) {
  for (std::size_t n = 2; n <= 7; ++n) {
    std::vector<double> order(n);
    std::iota(order.begin(), order.end(), 0.0);
    std::vector<long> counts;
    do counts.push_back(discordant_pairs(order));
    while (std::next_permutation(order.begin(), order.end()));
    for (long q = -1; q <= static_cast<long>(n * n); ++q) {
      const auto within =
          std::count_if(counts.begin(), counts.end(), [q](long count) { return count <= q; });
      EXPECT_NEAR(kendall_cdf(n, q),
                  static_cast<double>(within) / static_cast<double>(counts.size()), 1e-12)
          << n << " values, " << q << " discordant pairs";
    }
  }
}

TEST_F(Slope, is_the_line_itself_where_there_is_no_noise) {
  const Series line{{1, 2, 4, 8, 9, 10}, {3, 5, 9, 17, 19, 21}};
  EXPECT_DOUBLE_EQ(theil_sen(line), 2);
  const Interval interval = theil_sen_interval(line, 0.95);
  EXPECT_DOUBLE_EQ(interval.low, 2);
  EXPECT_DOUBLE_EQ(interval.high, 2);
  EXPECT_NEAR(residual_autocorrelation(line), 0, 1e-9);
}

TEST_F(Slope, is_not_moved_by_a_few_values_however_wild) {
  Series series;
  for (int i = 0; i < 40; ++i) {
    series.at.push_back(i);
    series.values.push_back(5.0 * i);
  }
  for (const std::size_t wild : {3U, 17U, 18U, 31U}) series.values[wild] = 1e12;
  EXPECT_DOUBLE_EQ(theil_sen(series), 5);
}

// Checks the interval by its definition: count the discordant pairs that remain after a slope is
// subtracted.
TEST_F(Slope, has_in_its_interval_what_the_test_of_kendall_does_not_reject) {
  for (int round = 0; round < 60; ++round) {
    const std::size_t n = 6 + random_() % 15;
    const Series series = random_series(n);
    const Interval interval = theil_sen_interval(series, 0.95);
    for (int tried = 0; tried < 20; ++tried) {
      const double slope = std::normal_distribution<double>(0.3, 0.5)(random_);
      std::vector<double> rest;
      for (std::size_t i = 0; i < n; ++i) rest.push_back(series.values[i] - slope * series.at[i]);
      const long discordant = discordant_pairs(rest);
      const long pairs = static_cast<long>(n * (n - 1) / 2);
      const double p = 2 * kendall_cdf(n, std::min(discordant, pairs - discordant));
      EXPECT_EQ(slope > interval.low && slope<interval.high, p> 0.05)
          << "slope " << slope << " of " << interval.low << " … " << interval.high;
    }
  }
}

TEST_F(Slope, has_no_finite_interval_before_the_level_can_be_reached) {
  EXPECT_TRUE(std::isinf(theil_sen_interval(random_series(4), 0.95).low));
  EXPECT_TRUE(std::isfinite(theil_sen_interval(random_series(5), 0.95).low));
}

TEST_F(Slope, takes_medians_of_blocks_as_even_as_can_be) {
  for (int round = 0; round < 50; ++round) {
    const std::size_t n = 1 + random_() % 60;
    const std::size_t count = 1 + random_() % 20;
    const Series series = random_series(n);
    const Series blocks = block_medians(series, count);
    ASSERT_EQ(blocks.size(), std::min(count, n));
    std::size_t end = 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const std::size_t begin = end;
      end = (b + 1) * n / blocks.size();
      EXPECT_LE(end - begin, n / blocks.size() + 1);
      EXPECT_GE(end - begin, n / blocks.size());
      std::vector<double> values(series.values.begin() + static_cast<long>(begin),
                                 series.values.begin() + static_cast<long>(end));
      std::sort(values.begin(), values.end());
      const std::size_t size = values.size();
      EXPECT_DOUBLE_EQ(blocks.values[b], (values[(size - 1) / 2] + values[size / 2]) / 2);
    }
    EXPECT_EQ(end, n);
  }
}

TEST_F(Slope, refuses_what_is_no_series) {
  EXPECT_THROW(check_series({{1, 2}, {1}}), Error);
  EXPECT_THROW(check_series({{1, 1}, {1, 2}}), Error);
  EXPECT_THROW(check_series({{1, 2}, {1, std::numeric_limits<double>::quiet_NaN()}}), Error);
  EXPECT_NO_THROW(check_series({{1, 2}, {1, 1}}));
}

}  // namespace
}  // namespace headroom::slope_test
