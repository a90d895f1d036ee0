// The design against the noise of a shared machine, simulated: slow drift (first-order
// autoregressive, sd 5 %), independent noise (2 %) and rare bursts. The seed is fixed and the
// bounds stand many standard errors away from the rates, so that only a wrong method fails.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "harness/stats/distributions.h"
#include "harness/stats/verdict.h"

namespace headroom {
namespace {

constexpr int kRounds = 2000;
constexpr std::size_t kPairs = 15;

class Machine {
 public:
  explicit Machine(std::mt19937_64& generator) : generator_(generator) {
    drift_ = 0.05 * normal_(generator_);
  }
  // Log of the time of one run.
  double run() {
    constexpr double kMemory = 0.9;
    drift_ = kMemory * drift_ + 0.05 * std::sqrt(1 - kMemory * kMemory) * normal_(generator_);
    const double burst = uniform_(generator_) < 0.05 ? 0.15 * uniform_(generator_) : 0.0;
    return drift_ + 0.02 * normal_(generator_) + burst;
  }

 private:
  std::mt19937_64& generator_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double drift_;
};

// Share of rounds in which two identical arms, run in randomised pairs, look different.
double paired_false_alarm_rate() {
  std::mt19937_64 generator(20250917);
  int alarms = 0;
  for (int round = 0; round < kRounds; ++round) {
    Machine machine(generator);
    std::vector<double> differences;
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      const double first = machine.run();
      const double second = machine.run();
      differences.push_back(generator() % 2 == 0 ? second - first : first - second);
    }
    const Interval interval = compare_pairs(differences, 0).ci95;
    if (interval.low > 0 || interval.high < 0) ++alarms;
  }
  return static_cast<double>(alarms) / kRounds;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double variance_of_mean(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += std::pow(value - mean(values), 2);
  const double n = static_cast<double>(values.size());
  return squares / (n - 1) / n;
}

// The same with all runs of one arm before all runs of the other and a two-sample t-test.
double one_after_the_other_false_alarm_rate() {
  std::mt19937_64 generator(20250917);
  const double critical = student_t_quantile(0.975, 2 * (kPairs - 1));
  int alarms = 0;
  for (int round = 0; round < kRounds; ++round) {
    Machine machine(generator);
    std::vector<double> a(kPairs);
    std::vector<double> b(kPairs);
    for (double& value : a) value = machine.run();
    for (double& value : b) value = machine.run();
    const double error = std::sqrt(variance_of_mean(a) + variance_of_mean(b));
    if (std::abs(mean(b) - mean(a)) > critical * error) ++alarms;
  }
  return static_cast<double>(alarms) / kRounds;
}

// Share of rounds in which a slowdown of 2δ is called WORSE with ten pairs.
double power_at_twice_delta(double noise) {
  constexpr double kDelta = 0.03;
  std::mt19937_64 generator(20250917);
  std::normal_distribution<double> normal(2 * kDelta, noise);
  int seen = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> differences(10);
    for (double& d : differences) d = normal(generator);
    if (judge_change(compare_pairs(differences, 0), kDelta) == ChangeVerdict::worse) ++seen;
  }
  return static_cast<double>(seen) / kRounds;
}

TEST(Design, keeps_its_false_alarm_rate_on_drifting_noise) {
  const double rate = paired_false_alarm_rate();
  EXPECT_LT(rate, 0.07);
  EXPECT_GT(rate, 0.02) << "an interval that never alarms is too wide";
}

TEST(Design, is_tested_on_noise_that_does_mislead_the_naive_design) {
  EXPECT_GT(one_after_the_other_false_alarm_rate(), 0.25);
}

TEST(Design, sees_a_slowdown_as_often_as_documented) {
  EXPECT_NEAR(power_at_twice_delta(0.02), 0.98, 0.03);
  EXPECT_NEAR(power_at_twice_delta(0.05), 0.37, 0.06);
  EXPECT_NEAR(power_at_twice_delta(0.12), 0.10, 0.04);
}

}  // namespace
}  // namespace headroom
