#include "harness/nights/levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "harness/stats/distributions.h"

namespace headroom::levels_test {
namespace {

constexpr const char* kTime = "steady_step_time_ns";
constexpr double kBase = 1e8;

// Nights of one machine with a number of timed cells; each test supplies the figures.
class Levels : public ::testing::Test {
 protected:
  void add_night(const std::vector<double>& times, const std::string& environment = "one") {
    Night night;
    night.night_id = night.started = std::to_string(1000 + nights_.size());
    night.suite = "suite";
    night.machine = "machine";
    night.environment_id = environment;
    for (std::size_t i = 0; i < times.size(); ++i) {
      NightCell cell{.experiment = "experiment",
                     .arm = std::to_string(i),
                     .cell_id = "cell",
                     .device_class = "host",
                     .rules = "rules",
                     .status = kResult,
                     .why = "",
                     .exact = {},
                     .noisy = {{kTime, times[i]}}};
      night.cells.push_back(cell);
    }
    nights_.push_back(night);
  }
  // Alternates above and below the level, so that nothing depends on chance.
  void add_level(int count, double level, const std::string& environment = "one") {
    for (int i = 0; i < count; ++i) add_night({level * (i % 2 == 0 ? 1.005 : 0.995)}, environment);
  }
  std::vector<Shift> shifts() const { return shifts_of(nights_, AcceptedState(accepted_)); }

  std::vector<Night> nights_;
  std::vector<Acceptance> accepted_;
};

TEST_F(Levels, of_a_slower_cell_are_told_with_the_night_since_when) {
  add_level(20, kBase);
  add_level(10, 1.1 * kBase);
  const auto found = shifts();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].worse);
  EXPECT_NEAR(found[0].after / found[0].before, 1.1, 1e-3);
  EXPECT_EQ(found[0].first_night, nights_[20].night_id);
  EXPECT_EQ(found[0].previous_night, nights_[19].night_id);
}

TEST_F(Levels, that_fall_are_better_and_no_regression) {
  add_level(20, kBase);
  add_level(10, 0.9 * kBase);
  ASSERT_EQ(shifts().size(), 1u);
  EXPECT_FALSE(shifts()[0].worse);
}

TEST_F(Levels, that_shift_by_less_than_the_margin_stay_untold) {
  add_level(20, kBase);
  add_level(10, 1.02 * kBase);
  EXPECT_THAT(shifts(), ::testing::IsEmpty());
}

TEST_F(Levels, start_afresh_in_another_environment) {
  add_level(20, kBase);
  add_level(10, 1.5 * kBase, "two");
  EXPECT_THAT(shifts(), ::testing::IsEmpty());
}

TEST_F(Levels, start_afresh_where_they_were_accepted) {
  add_level(20, kBase);
  add_level(10, 1.1 * kBase);
  accepted_.push_back(
      accept_cell(nights_.back(), nights_.back().cells[0], nights_[20].started, "meant", "now"));
  EXPECT_THAT(shifts(), ::testing::IsEmpty());
  add_level(10, 1.3 * kBase);
  ASSERT_EQ(shifts().size(), 1u);
  EXPECT_EQ(shifts()[0].first_night, nights_[30].night_id);
}

TEST_F(Levels, of_nights_that_are_not_to_be_trusted_do_not_count) {
  add_level(20, kBase);
  add_level(10, 1.1 * kBase);
  for (std::size_t i = 20; i < 30; ++i) nights_[i].distrust = "Missed.";
  EXPECT_THAT(shifts(), ::testing::IsEmpty());
}

// Benjamini and Hochberg: with 40 cells of pure noise, at most 5 % of the checks report one.
TEST_F(Levels, of_many_cells_of_noise_are_told_no_more_often_than_one_would_be) {
  constexpr int kRounds = 200;
  constexpr int kCells = 40;
  constexpr int kNights = 30;
  const unsigned seed = std::random_device{}();
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, 0.05);
  int alarms = 0;
  for (int round = 0; round < kRounds; ++round) {
    nights_.clear();
    for (int night = 0; night < kNights; ++night) {
      std::vector<double> times(kCells);
      for (double& time : times) time = kBase * std::exp(noise(random));
      add_night(times);
    }
    alarms += shifts().empty() ? 0 : 1;
  }
  RecordProperty("alarms", alarms);
  EXPECT_GT(binomial_upper_tail(kRounds, 0.05, alarms), 1e-6)
      << alarms << " of " << kRounds << ", seed " << seed;
}

}  // namespace
}  // namespace headroom::levels_test
