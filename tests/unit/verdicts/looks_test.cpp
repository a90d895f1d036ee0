// False-alarm rates when blocks are added because the first ones left a comparison undecided. The
// seed is fixed and the bounds are many standard errors from the rates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/evidence/evidence.h"
#include "harness/verdicts/verify.h"
#include "tests/unit/support/synthetic_samples.h"

namespace headroom::looks_test {
namespace {

constexpr int kRounds = 1000;
constexpr int kLooks = 5;
constexpr int kBlocks = 10;

enum class Level { halved_at_each_look, always_the_same };

// Share of rounds in which identical configurations look different at any of five looks, with ten
// blocks added before each.
double false_alarm_rate(Level level) {
  std::mt19937_64 generator(20261120);
  std::normal_distribution<double> noise(0, 0.05);
  int alarms = 0;
  for (int round = 0; round < kRounds; ++round) {
    Finding finding;
    finding.compared = true;
    bool alarm = false;
    for (int look = 0; look < kLooks && !alarm; ++look) {
      for (int block = 0; block < kBlocks; ++block) finding.differences.push_back(noise(generator));
      finding.looks = level == Level::halved_at_each_look ? look : 0;
      compare_at(finding, 0.05);
      alarm = finding.comparison.ci95.low > 0 || finding.comparison.ci95.high < 0;
    }
    if (alarm) ++alarms;
  }
  return static_cast<double>(alarms) / kRounds;
}

TEST(Looks, that_halve_the_level_raise_at_most_twice_the_false_alarms_of_one) {
  EXPECT_LT(false_alarm_rate(Level::halved_at_each_look), 0.10);
}

TEST(Looks, at_the_same_level_would_raise_more_than_that) {
  EXPECT_GT(false_alarm_rate(Level::always_the_same), 0.11);
}

TEST(Looks, widen_the_interval_and_stand_in_the_sentence) {
  const Experiment experiment = synthetic::experiment();
  VerifyInput input;
  input.claims = {synthetic::claim()};
  input.claims[0].parts = {synthetic::direction("steady_step_time_ns", 1)};
  input.experiments = experiments_of(input.claims[0]);
  input.samples = synthetic::timed_blocks(experiment, 20, 0.02, 0.05);
  const std::string before = verdicts_json(input);
  input.additions = {{.experiment = experiment.id, .added = "", .first_block = 10, .blocks = 10}};
  const std::string after = verdicts_json(input);
  EXPECT_THAT(before, ::testing::Not(::testing::HasSubstr("after a look")));
  EXPECT_THAT(after,
              ::testing::HasSubstr(
                  "added after a look at the results: intervals hold at 97.5 % instead of 95 %"));
}

TEST(Looks, do_not_count_where_failures_were_replaced) {
  const Experiment experiment = synthetic::experiment();
  const auto samples = synthetic::timed_blocks(experiment, 4, 0, 0.01);
  const SampleTable table(samples, {{.experiment = experiment.id,
                                     .reason = AddedFor::failed,
                                     .added = "",
                                     .first_block = 2,
                                     .blocks = 2}});
  EXPECT_EQ(table.looks(experiment.id), 0);
}

}  // namespace
}  // namespace headroom::looks_test
