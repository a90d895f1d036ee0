#include "harness/evidence/sample_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/support/synthetic_samples.h"

namespace headroom::sample_size_test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kPilot = 10;

std::vector<Experiment> staged(int cap, const std::string& device = "host") {
  std::vector<Experiment> experiments = {synthetic::experiment(device, "suite/x")};
  experiments[0].origin = "suite";
  experiments[0].blocks = kPilot;
  plan_stages(experiments, 1, cap);
  return experiments;
}

std::vector<SecondStage> stages_of(const std::vector<Experiment>& experiments,
                                   const std::vector<Sample>& samples) {
  return second_stages(experiments, planned_comparisons(experiments, {}), samples);
}

TEST(SecondStage, is_asked_for_where_the_pilot_varies_and_only_there) {
  const auto experiments = staged(60);
  EXPECT_THAT(stages_of(experiments, synthetic::timed_blocks(experiments[0], kPilot, 0, 0.004)),
              IsEmpty());
  const auto stages =
      stages_of(experiments, synthetic::timed_blocks(experiments[0], kPilot, 0, 0.02));
  ASSERT_THAT(stages, SizeIs(1));
  EXPECT_EQ(stages[0].blocks, stages[0].wanted - kPilot);
}

TEST(SecondStage, does_not_look_at_the_estimate) {
  const std::uint64_t seed = std::random_device{}();
  std::mt19937_64 generator(seed);
  // The spread is so wide that no pilot is large enough by chance.
  const double spread = std::uniform_real_distribution<double>(0.1, 0.3)(generator);
  const auto experiments = staged(1'000'000);
  const auto wanted = [&](double effect) {
    const auto stages =
        stages_of(experiments, synthetic::timed_blocks(experiments[0], kPilot, effect, spread));
    return stages.empty() ? 0 : stages[0].wanted;
  };
  // Step times are whole nanoseconds, and rounding may change the number by one.
  for (const double effect : {0.03, -0.1, 0.7, -2.0})
    EXPECT_NEAR(wanted(effect), wanted(0), 1) << "seed " << seed;
  EXPECT_GT(wanted(0), 0) << "seed " << seed;
}

TEST(SecondStage, does_not_look_at_what_came_after_the_pilot) {
  const auto experiments = staged(60);
  auto samples = synthetic::timed_blocks(experiments[0], kPilot + 5, 0, 0.02);
  const auto before = stages_of(experiments, samples);
  for (Sample& sample : samples)
    if (sample.block >= kPilot && sample.arm == "new") synthetic::set_step_time(sample, 9e9);
  const auto after = stages_of(experiments, samples);
  ASSERT_THAT(after, SizeIs(1));
  EXPECT_EQ(after[0].wanted, before[0].wanted);
}

TEST(SecondStage, stops_at_the_cap_and_still_says_what_is_wanted) {
  const auto experiments = staged(12);
  const auto stages =
      stages_of(experiments, synthetic::timed_blocks(experiments[0], kPilot, 0, 0.1));
  ASSERT_THAT(stages, SizeIs(1));
  EXPECT_EQ(stages[0].blocks, 2);
  EXPECT_GT(stages[0].wanted, 100);
}

TEST(SecondStage, waits_for_the_pilot) {
  const auto experiments = staged(60);
  EXPECT_THAT(stages_of(experiments, synthetic::timed_blocks(experiments[0], 4, 0, 0.1)),
              IsEmpty());
}

TEST(SecondStage, is_for_noisy_figures_alone) {
  const auto exact = staged(60, "meta");
  EXPECT_THAT(stages_of(exact, synthetic::timed_blocks(exact[0], kPilot, 0, 0.1)), IsEmpty());
}

TEST(SecondStage, of_a_control_asks_for_what_shows_twice_the_margin) {
  auto experiments = staged(1000);
  const auto samples = synthetic::timed_blocks(experiments[0], kPilot, 0, 0.1);
  const auto compared = stages_of(experiments, samples);
  experiments[0].kind = ExperimentKind::control;
  const auto control = stages_of(experiments, samples);
  ASSERT_THAT(control, SizeIs(1));
  ASSERT_THAT(compared, SizeIs(1));
  EXPECT_NEAR(control[0].wanted, compared[0].wanted / 4.0, 1);
}

TEST(SecondStage, of_a_claim_goes_by_the_margin_of_its_parts) {
  Claim claim = synthetic::claim();
  claim.parts = {synthetic::direction("steady_step_time_ns", 1)};
  claim.parts[0].claimed.delta = 0.5;
  auto experiments = experiments_of(claim);
  experiments[0].blocks = kPilot;
  plan_stages(experiments, 1, 60);
  const auto samples = synthetic::timed_blocks(experiments[0], kPilot, 0, 0.05);
  EXPECT_THAT(second_stages(experiments, planned_comparisons(experiments, {claim}), samples),
              IsEmpty());
  claim.parts[0].claimed.delta = 0.01;
  EXPECT_THAT(second_stages(experiments, planned_comparisons(experiments, {claim}), samples),
              SizeIs(1));
}

TEST(Pilot, is_raised_to_what_many_verdicts_need) {
  const auto pilot = [](std::size_t verdicts, int blocks, std::optional<int> cap) {
    std::vector<Experiment> experiments = {synthetic::experiment()};
    experiments[0].blocks = blocks;
    plan_stages(experiments, verdicts, cap);
    return experiments[0].blocks;
  };
  EXPECT_EQ(pilot(1, 10, 60), 10);
  EXPECT_EQ(pilot(100, 10, 60), 12) << "1 + log2(100 / 0.05), rounded up";
  EXPECT_EQ(pilot(100, 10, 11), 11) << "never beyond the cap";
  EXPECT_EQ(pilot(100, 20, 60), 20);
  EXPECT_EQ(pilot(100, 2, 60), 2) << "who asks for two wants to see that it runs";
  EXPECT_EQ(pilot(100, 10, std::nullopt), 12) << "without a second stage, too";
  EXPECT_EQ(pilot(100, 20, std::nullopt), 20);
}

TEST(Verdicts, are_counted_once_a_comparison_of_experiments_that_are_to_decide) {
  Claim claim = synthetic::claim();
  const ClaimPart part = synthetic::direction("steady_step_time_ns", 1);
  claim.parts = {part, part};
  auto experiments = experiments_of(claim);
  ASSERT_THAT(experiments, SizeIs(1));
  experiments[0].blocks = kPilot;
  EXPECT_EQ(count_verdicts(experiments, {claim}), 1U) << "two parts look at one comparison";
  claim.parts[1].kind = PartKind::control;
  claim.parts[1].metrics = {"throughput_samples_per_s"};
  EXPECT_EQ(count_verdicts(experiments, {claim}), 2U);
  experiments[0].blocks = 2;
  EXPECT_EQ(count_verdicts(experiments, {claim}), 0U);
}

}  // namespace
}  // namespace headroom::sample_size_test
