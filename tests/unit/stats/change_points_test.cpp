#include "harness/stats/change_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "harness/stats/distributions.h"

namespace headroom::change_points_test {
namespace {

class Series {
 public:
  Series() : seed_(std::random_device{}()), random_(seed_) {}
  unsigned seed() const { return seed_; }
  std::vector<double> noise(std::size_t count, double level, double sd) {
    std::normal_distribution<double> normal(level, sd);
    std::vector<double> values(count);
    for (double& value : values) value = normal(random_);
    return values;
  }

 private:
  unsigned seed_;
  std::mt19937_64 random_;
};

std::vector<double> joined(std::vector<double> first, const std::vector<double>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(ChangePoints, are_none_in_a_constant_series_or_one_too_short_for_two_levels) {
  EXPECT_THAT(change_points(std::vector<double>(30, 7.0)), ::testing::IsEmpty());
  EXPECT_THAT(change_points(std::vector<double>{1, 1, 1, 9, 9}), ::testing::IsEmpty());
}

TEST(ChangePoints, see_a_step_between_constant_levels_as_soon_as_it_is_a_level) {
  EXPECT_THAT(change_points(std::vector<double>{1, 1, 1, 9, 9, 9}), ::testing::ElementsAre(3));
}

TEST(ChangePoints, find_the_night_of_a_step_far_above_the_noise) {
  Series series;
  const auto values = joined(series.noise(23, 0, 0.001), series.noise(9, 1, 0.001));
  EXPECT_THAT(change_points(values), ::testing::Contains(23)) << "seed " << series.seed();
}

TEST(ChangePoints, take_one_odd_night_for_no_level) {
  Series series;
  auto values = series.noise(30, 0, 0.01);
  values[12] = 0.5;
  EXPECT_EQ(latest_shift(values), std::nullopt) << "seed " << series.seed();
}

// Alternates around a level, so no stretch of it has a level of its own by chance.
std::vector<double> alternating(std::size_t count, double level) {
  std::vector<double> values(count, level - 0.001);
  for (std::size_t i = 0; i < count; i += 2) values[i] += 0.002;
  return values;
}

TEST(LatestShift, measures_against_the_best_level_and_is_past_when_that_is_reached_again) {
  auto values = joined(alternating(12, 1), alternating(10, 0.5));
  values = joined(values, alternating(10, 0.7));
  const auto worse = latest_shift(values);
  ASSERT_TRUE(worse);
  EXPECT_EQ(worse->since, 22u);
  EXPECT_NEAR(worse->last - worse->best, 0.2, 1e-9);
  const auto back = latest_shift(joined(values, alternating(10, 0.5)));
  ASSERT_TRUE(back);
  EXPECT_NEAR(back->last, back->best, 1e-9);
}

TEST(LatestShift, dates_a_shift_at_its_largest_step) {
  auto values = joined(alternating(12, 0.5), alternating(10, 0.7));
  values = joined(values, alternating(6, 0.72));
  ASSERT_THAT(change_points(values), ::testing::ElementsAre(12, 22));
  EXPECT_EQ(latest_shift(values)->since, 12u);
}

// By Bonferroni's inequality the corrected p-value is ≤ 0.05 for at most 5 % of noise series.
TEST(LatestShift, raises_no_more_false_alarms_on_noise_than_its_p_value_admits) {
  Series series;
  constexpr int kRounds = 2000;
  int alarms = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto shift = latest_shift(series.noise(50, 0, 0.02));
    alarms += shift && shift->p <= 0.05 ? 1 : 0;
  }
  RecordProperty("alarms", alarms);
  EXPECT_GT(binomial_upper_tail(kRounds, 0.05, alarms), 1e-6)
      << alarms << " of " << kRounds << ", seed " << series.seed();
}

}  // namespace
}  // namespace headroom::change_points_test
