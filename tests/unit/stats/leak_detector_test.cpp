#include "harness/stats/leak_detector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "harness/base/error.h"
#include "harness/base/units.h"

namespace headroom::leak_detector_test {
namespace {

class LeakDetector : public ::testing::Test {
 protected:
  // A series of `bytes` at steps 1 … n, plus noise of up to `noise` bytes either way.
  Series steps(int n, const std::function<double(int)>& bytes, double noise = 0) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    Series series;
    for (int step = 1; step <= n; ++step) {
      series.at.push_back(step);
      series.values.push_back(bytes(step) + noise * uniform(random_));
    }
    return series;
  }

  const std::uint64_t seed_ = std::random_device{}();
  std::mt19937_64 random_{seed_};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(seed_)};
};

TEST_F(LeakDetector, gives_the_exact_slope_of_bytes_that_are_counted) {
  const LeakFinding finding = detect_leak(steps(12, [](int s) { return 1e6 + 4096.0 * s; }));
  EXPECT_EQ(finding.verdict, LeakVerdict::leak);
  EXPECT_EQ(finding.slope, 4096);
  EXPECT_EQ(finding.interval.low, 4096);
  EXPECT_EQ(finding.interval.high, 4096);
}

TEST_F(LeakDetector, finds_none_where_every_step_ends_with_the_same_bytes) {
  const LeakFinding finding = detect_leak(steps(12, [](int) { return 1e6; }));
  EXPECT_EQ(finding.verdict, LeakVerdict::no_leak);
  EXPECT_EQ(finding.slope, 0);
}

TEST_F(LeakDetector, finds_none_where_bytes_shrink) {
  EXPECT_EQ(detect_leak(steps(
                            40, [](int s) { return 1e9 - 1e6 * s; }, 1e5))
                .verdict,
            LeakVerdict::no_leak);
}

TEST_F(LeakDetector, sees_a_leak_behind_noise_that_is_far_larger_than_a_step_of_it) {
  const LeakFinding finding = detect_leak(steps(
                                              400, [](int s) { return 1e9 + 1e5 * s; }, 2e6),
                                          {.harmless_slope = 1e4});
  EXPECT_EQ(finding.verdict, LeakVerdict::leak);
  EXPECT_NEAR(finding.slope, 1e5, 3e4);
}

TEST_F(LeakDetector, sees_a_leak_that_takes_its_memory_in_large_pieces) {
  EXPECT_EQ(detect_leak(steps(
                            300, [](int s) { return 64e6 * std::floor(s / 12.0); }, 1e6))
                .verdict,
            LeakVerdict::leak);
}

TEST_F(LeakDetector, sees_a_leak_below_a_cache_that_fills_and_empties) {
  EXPECT_EQ(detect_leak(steps(
                            400, [](int s) { return 1e5 * s + 2e6 * (s % 10); }, 1e5))
                .verdict,
            LeakVerdict::leak);
}

TEST_F(LeakDetector, takes_a_cache_that_fills_and_empties_for_no_leak) {
  const LeakFinding finding = detect_leak(steps(
                                              400, [](int s) { return 2e6 * (s % 10); }, 1e5),
                                          {.harmless_slope = 5e4});
  EXPECT_EQ(finding.verdict, LeakVerdict::no_leak);
}

TEST_F(LeakDetector, tells_a_warm_up_from_a_leak) {
  const auto warming = [](int s) { return 1e9 * (1 - std::exp(-s / 40.0)); };
  const LeakFinding finding = detect_leak(steps(400, warming, 1e6), {.harmless_slope = 5e4});
  EXPECT_EQ(finding.verdict, LeakVerdict::levels_off);
  EXPECT_GT(finding.warmup_growth, 5e8);
}

TEST_F(LeakDetector, tells_growth_that_stops_half_way_from_a_leak) {
  const auto filling = [](int s) { return 1e6 * std::min(s, 200); };
  EXPECT_EQ(detect_leak(steps(400, filling, 1e5), {.harmless_slope = 5e4}).verdict,
            LeakVerdict::levels_off);
}

TEST_F(LeakDetector, does_not_take_a_leak_below_a_warm_up_for_growth_that_levels_off) {
  // A program loads 500 MB at first, and leaks 2 MB a second from its start.
  for (int seconds = 15; seconds < 60; ++seconds) {
    const auto bytes = [](int tenth) { return 5e8 * (1 - std::exp(-tenth / 60.0)) + 2e5 * tenth; };
    const auto verdict =
        detect_leak(steps(10 * seconds, bytes, 1e6), {.harmless_slope = 1e6 / 600}).verdict;
    EXPECT_TRUE(verdict == LeakVerdict::undecided || verdict == LeakVerdict::leak)
        << to_string(verdict) << " after " << seconds << " s";
  }
}

TEST_F(LeakDetector, says_how_long_a_series_must_be_to_show_a_slope) {
  const LeakFinding finding = detect_leak(steps(
      50, [](int) { return 1e9; }, 1e6));
  const double small = finding.detectable_slope / 8;
  EXPECT_NEAR(length_to_see(finding, finding.detectable_slope).value(), finding.length, 1e-6);
  EXPECT_NEAR(length_to_see(finding, small).value(), 4 * finding.length, 1e-6);
  EXPECT_FALSE(length_to_see(detect_leak(steps(5, [](int s) { return 1e6 * s; })), 1e6));
}

TEST_F(LeakDetector, takes_one_step_up_for_no_leak_wherever_it_comes) {
  for (int at = 120; at < 350; at += 10) {
    const auto jump = [at](int s) { return s < at ? 1e9 : 1.1e9; };
    const LeakFinding finding = detect_leak(steps(400, jump), {.harmless_slope = 100});
    EXPECT_EQ(finding.verdict, LeakVerdict::levels_off) << "a step up at " << at;
  }
}

TEST_F(LeakDetector, leaves_short_series_open_and_says_how_much_is_missing) {
  const LeakFinding finding = detect_leak(steps(5, [](int s) { return 1e6 * s; }));
  EXPECT_EQ(finding.verdict, LeakVerdict::undecided);
  EXPECT_EQ(finding.more_needed, 3);
  EXPECT_EQ(describe(finding, {}, "step"), "too short to tell");
}

TEST_F(LeakDetector, decides_a_noisy_series_that_goes_on_for_as_long_as_it_asked) {
  const auto leaking = [](int s) { return 2e4 * s; };
  const LeakOptions options{.harmless_slope = 1e4};
  int n = 30;
  LeakFinding finding = detect_leak(steps(n, leaking, 2e6), options);
  for (int looks = 0; finding.verdict == LeakVerdict::undecided && looks < 20; ++looks) {
    n += finding.more_needed ? static_cast<int>(std::ceil(std::min(*finding.more_needed, 1.0 * n)))
                             : n;
    finding = detect_leak(steps(n, leaking, 2e6), options);
  }
  EXPECT_NE(finding.verdict, LeakVerdict::undecided) << n << " steps";
}

// bench/statistics measures the rates; this test checks their upper limits.
TEST_F(LeakDetector, raises_few_false_alarms_over_noise_that_remembers) {
  std::normal_distribution<double> normal;
  int alarms = 0;
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    double level = normal(random_);
    const Series series = steps(100, [&](int) {
      level = 0.9 * level + std::sqrt(1 - 0.81) * normal(random_);
      return level;
    });
    alarms += detect_leak(series).verdict == LeakVerdict::leak ? 1 : 0;
  }
  EXPECT_LE(alarms, kRounds / 10);
}

TEST_F(LeakDetector, describes_a_slope_with_its_interval) {
  const LeakFinding finding = detect_leak(steps(12, [](int s) { return 4096.0 * s; }));
  EXPECT_EQ(describe(finding, {}, "step"), "4.00 KiB per step (95 % interval 4.00 KiB … 4.00 KiB)");
}

TEST_F(LeakDetector, refuses_options_that_mean_nothing) {
  const Series flat = steps(20, [](int) { return 1.0; });
  EXPECT_THROW(detect_leak(flat, {.level = 1}), Error);
  EXPECT_THROW(detect_leak(flat, {.warmup_share = 0.9}), Error);
}

}  // namespace
}  // namespace headroom::leak_detector_test
