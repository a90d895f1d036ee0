// The design under simulated noise of a shared machine: slow drift (first-order autoregressive, sd
// 5 %), independent noise (2 %) and rare bursts. The seed is fixed and the bounds are many standard
// errors from the rates, so only a wrong method fails.
#include <gtest/gtest.h>

#include <cmath>

#include "harness/stats/simulation.h"
#include "harness/stats/verdict.h"

namespace headroom::design_simulation_test {
namespace {

const double kDelta = std::log1p(kNoisyMargin);

double false_alarm_rate(Design design, std::size_t pairs) {
  return simulate({.design = design, .delta = kDelta, .pairs = pairs}).alarms;
}

// Power: the rate at which a slowdown of 2δ is called WORSE.
double power(Design design, double noise) {
  return simulate({.design = design,
                   .noise = independent_noise(noise),
                   .effect = 2 * kDelta,
                   .delta = kDelta})
      .worse;
}

TEST(Design, keeps_its_false_alarm_rate_on_drifting_noise) {
  for (const std::size_t pairs : {10u, 15u}) {
    const double rate = false_alarm_rate(Design::paired, pairs);
    EXPECT_LT(rate, 0.07) << pairs;
    EXPECT_GT(rate, 0.02) << pairs << ": an interval that never alarms is too wide";
  }
}

TEST(Design, keeps_it_when_the_pilot_decides_how_many_pairs_follow) {
  const double rate = false_alarm_rate(Design::two_stage, 10);
  EXPECT_LT(rate, 0.07);
  EXPECT_GT(rate, 0.02);
}

TEST(Design, is_tested_on_noise_that_does_mislead_the_naive_design) {
  EXPECT_GT(false_alarm_rate(Design::one_after_the_other, 15), 0.25);
}

TEST(Design, sees_a_slowdown_as_often_as_documented) {
  EXPECT_NEAR(power(Design::paired, 0.02), 0.98, 0.03);
  EXPECT_NEAR(power(Design::paired, 0.05), 0.37, 0.06);
  EXPECT_NEAR(power(Design::paired, 0.12), 0.10, 0.04);
}

TEST(Design, sees_more_where_the_noise_asks_for_a_second_stage) {
  EXPECT_GT(power(Design::two_stage, 0.05), power(Design::paired, 0.05) + 0.3);
}

TEST(Design, takes_no_second_stage_where_the_noise_is_small_and_stops_at_the_cap) {
  const auto pairs = [](double noise, std::size_t cap) {
    return simulate({.design = Design::two_stage,
                     .noise = independent_noise(noise),
                     .delta = kDelta,
                     .max_pairs = cap})
        .pairs;
  };
  EXPECT_LT(pairs(0.005, 60), 10.01);
  EXPECT_GT(pairs(0.12, 20), 19);
  EXPECT_LE(pairs(0.12, 20), 20);
}

}  // namespace
}  // namespace headroom::design_simulation_test
