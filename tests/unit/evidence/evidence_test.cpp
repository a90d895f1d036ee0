#include "harness/evidence/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/unit/support/synthetic_samples.h"

namespace headroom::evidence_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTime = "steady_step_time_ns";
constexpr const char* kReserved = "reserved_bytes.initial";

Finding find_time(const std::vector<Sample>& samples, const Experiment& experiment) {
  return find(SampleTable(samples), experiment, "base", "new", find_metric(kTime),
              Scale::log_ratio);
}

Finding find_reserved(const std::vector<Sample>& samples, const Experiment& experiment) {
  return find(SampleTable(samples), experiment, "base", "new", find_metric(kReserved),
              Scale::log_ratio);
}

TEST(Evidence, pairs_the_arms_of_one_block_whatever_the_machine_did_between_blocks) {
  const Experiment experiment = synthetic::experiment();
  const Finding finding =
      find_time(synthetic::timed_blocks(experiment, 10, 0.08, 0.001), experiment);
  ASSERT_TRUE(finding.compared);
  EXPECT_EQ(finding.comparison.pairs, 10u);
  EXPECT_NEAR(finding.comparison.theta, 0.08, 1e-3);
  EXPECT_FALSE(finding.comparison.exact);
}

TEST(Evidence, does_not_depend_on_the_order_of_the_samples) {
  const std::uint64_t seed = std::random_device{}();
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.01);
  const Finding before = find_time(samples, experiment);
  std::shuffle(samples.begin(), samples.end(), std::mt19937_64(seed));
  EXPECT_EQ(find_time(samples, experiment).comparison.theta, before.comparison.theta)
      << "seed " << seed;
}

TEST(Evidence, turns_the_sign_when_the_arms_are_exchanged) {
  const Experiment experiment = synthetic::experiment();
  const auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.01);
  const Finding back =
      find(SampleTable(samples), experiment, "new", "base", find_metric(kTime), Scale::log_ratio);
  EXPECT_DOUBLE_EQ(back.comparison.theta, -find_time(samples, experiment).comparison.theta);
}

TEST(Evidence, leaves_both_arms_of_a_pair_out_when_the_machine_was_slow_beside_one) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.02);
  const Finding whole = find_time(samples, experiment);
  samples[6].probe_after_gflops = 300;
  samples[13].probe_before_gflops = 399;
  const Finding reduced = find_time(samples, experiment);
  EXPECT_EQ(reduced.excluded, 2u);
  EXPECT_EQ(reduced.comparison.pairs, 8u);
  EXPECT_GT(reduced.comparison.ci95.high - reduced.comparison.ci95.low,
            whole.comparison.ci95.high - whole.comparison.ci95.low);
}

TEST(Evidence, is_not_moved_by_a_few_steps_that_something_disturbed) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.001);
  for (std::size_t i = 0; i < samples.size(); i += 3) samples[i].step_time_ns.back() *= 50;
  EXPECT_NEAR(find_time(samples, experiment).comparison.theta, 0.08, 1e-3);
}

TEST(Evidence, compares_steps_that_took_turns_one_by_one) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0, 0);
  for (Sample& sample : samples) {
    sample.cell.warmup_steps = 1;
    sample.turns = {.steps = 1, .numbers = {0}};
    // The machine is slow from the fourth step on, in one of the two samples from the third on.
    sample.step_time_ns = sample.arm == "base" ? std::vector<std::uint64_t>{9, 100, 100, 200, 200}
                                               : std::vector<std::uint64_t>{9, 105, 210, 210, 210};
  }
  EXPECT_NEAR(find_time(samples, experiment).comparison.theta, std::log(1.05), 1e-9);
  for (Sample& sample : samples) sample.turns = {};
  EXPECT_NEAR(find_time(samples, experiment).comparison.theta, std::log(210.0 / 150), 1e-9);
}

TEST(Evidence, says_when_rare_slow_steps_make_the_means_differ_otherwise_than_the_medians) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0, 0.001);
  for (Sample& sample : samples)
    if (sample.arm == "new" && sample.block % 3 != 0) sample.step_time_ns.back() *= 2;
  const Finding finding = find_time(samples, experiment);
  EXPECT_NEAR(finding.comparison.theta, 0, 1e-3);
  ASSERT_TRUE(finding.tail);
  EXPECT_EQ(finding.tail->metric, "steady_step_time_mean_ns");
  EXPECT_GT(finding.tail->ci95.low, 0);
  EXPECT_THAT(finding.tail->why, HasSubstr("more frequent with new than with base"));
  const Finding back =
      find(SampleTable(samples), experiment, "new", "base", find_metric(kTime), Scale::log_ratio);
  EXPECT_THAT(back.tail->why, HasSubstr("more frequent with new than with base"));
}

TEST(Evidence, finds_no_tail_where_both_arms_have_the_same_slow_steps) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.001);
  for (Sample& sample : samples)
    if (sample.block % 2 == 0) sample.step_time_ns.back() *= 2;
  const Finding finding = find_time(samples, experiment);
  ASSERT_TRUE(finding.tail);
  EXPECT_EQ(finding.tail->why, "");
}

TEST(Evidence, looks_for_no_tail_where_the_figure_leaves_no_steps_out) {
  const Experiment experiment = synthetic::experiment();
  const auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.001);
  EXPECT_FALSE(find(SampleTable(samples), experiment, "base", "new",
                    find_metric("first_steps_time_ns"), Scale::log_ratio)
                   .tail);
  EXPECT_FALSE(find_reserved(samples, experiment).tail);
}

TEST(Evidence, keeps_a_pair_at_exactly_the_threshold) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.02);
  samples[6].probe_after_gflops = 0.8 * 500;
  EXPECT_EQ(find_time(samples, experiment).excluded, 0u);
}

TEST(Evidence, keeps_pairs_of_noisy_bytes_however_slow_the_machine_was) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.02);
  Bytes resident = 1000;
  for (Sample& sample : samples) {
    sample.process.resident.overall_peak = resident++;
    sample.probe_after_gflops = sample.block == 0 ? 500 : 10;
  }
  const Finding bytes = find(SampleTable(samples), experiment, "base", "new",
                             find_metric("process_bytes.overall_peak"), Scale::log_ratio);
  EXPECT_EQ(bytes.excluded, 0u);
  EXPECT_EQ(bytes.comparison.pairs, 10u);
  EXPECT_EQ(find_time(samples, experiment).excluded, 9u);
}

TEST(Evidence, keeps_times_of_a_gpu_however_slow_the_processor_was) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.02);
  for (Sample& sample : samples) {
    sample.cell.device = Spec("cuda");
    sample.probe_after_gflops = sample.block == 0 ? 500 : 10;
  }
  EXPECT_EQ(find_time(samples, experiment).excluded, 0u);
}

TEST(Evidence, compares_bytes_exactly_and_whatever_the_probes_say) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::reserved_blocks(experiment, 1000, 380);
  for (Sample& sample : samples) sample.probe_before_gflops = 500;
  samples[0].probe_before_gflops = 10;
  const Finding finding = find_reserved(samples, experiment);
  ASSERT_TRUE(finding.compared);
  EXPECT_TRUE(finding.comparison.exact);
  EXPECT_EQ(finding.comparison.pairs, 1u);
  EXPECT_EQ(finding.reason_code, "exact");
  EXPECT_DOUBLE_EQ(finding.comparison.theta, std::log(0.38));
}

TEST(Evidence, says_when_an_exact_figure_has_been_seen_once_only) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::reserved_blocks(experiment, 1000, 380);
  samples.resize(2);
  EXPECT_EQ(find_reserved(samples, experiment).reason_code, "exact_unrepeated");
}

TEST(Evidence, demotes_a_figure_that_should_be_exact_and_differs_between_processes) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::reserved_blocks(experiment, 1000, 380);
  samples.back().ledger.reserved.initial = 381;
  const Finding finding = find_reserved(samples, experiment);
  EXPECT_TRUE(finding.demoted);
  EXPECT_FALSE(finding.comparison.exact);
  EXPECT_EQ(finding.reason_code, "not_deterministic");
}

TEST(Evidence, takes_two_zeros_for_equal_and_one_zero_for_no_ratio) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::reserved_blocks(experiment, 1000, 1000);
  const auto find_counts = [&] {
    return find(SampleTable(samples), experiment, "base", "new",
                find_metric("device_allocations_total"), Scale::log_ratio);
  };
  EXPECT_EQ(find_counts().comparison.theta, 0);
  for (Sample& sample : samples)
    if (sample.arm == "new") sample.ledger.device_allocations[3] = 5;
  EXPECT_FALSE(find_counts().compared);
  EXPECT_EQ(find_counts().reason_code, "zero_value");
}

TEST(Evidence, counts_the_later_of_two_samples_for_one_place) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.02);
  samples.push_back(samples[7]);
  samples[7].status = SampleStatus::timeout;
  EXPECT_EQ(find_time(samples, experiment).comparison.pairs, 10u);
}

struct Ending {
  SampleStatus status;
  ClaimVerdict word;
  std::string code, says;
};

TEST(Evidence, of_an_arm_without_a_result_says_what_happened) {
  const std::vector<Ending> endings = {
      {SampleStatus::oom, ClaimVerdict::not_testable_here, "out_of_memory",
       "new ran out of memory: because"},
      {SampleStatus::unsupported, ClaimVerdict::not_testable_here, "unavailable",
       "new cannot run here: because"},
      {SampleStatus::crash, ClaimVerdict::inconclusive, "failed", "new crashed: because"},
      {SampleStatus::timeout, ClaimVerdict::inconclusive, "failed", "did not finish in time"},
      {SampleStatus::invalid, ClaimVerdict::invalid, "not_engaged", "did not do what its name"}};
  const Experiment experiment = synthetic::experiment();
  for (const Ending& ending : endings) {
    auto samples = synthetic::reserved_blocks(experiment, 1000, 380);
    for (Sample& sample : samples) {
      if (sample.arm == "base") continue;
      sample.status = ending.status;
      sample.reason = "because";
    }
    const Finding finding = find_reserved(samples, experiment);
    EXPECT_FALSE(finding.compared);
    EXPECT_EQ(finding.without, ending.word) << ending.code;
    EXPECT_EQ(finding.reason_code, ending.code);
    EXPECT_THAT(finding.why_not, HasSubstr(ending.says));
  }
}

TEST(Evidence, of_two_arms_without_a_result_says_once_what_happened_to_both) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::reserved_blocks(experiment, 1000, 380);
  const auto set = [&](SampleStatus status, const std::string& of_new) {
    for (Sample& sample : samples) {
      sample.status = status;
      sample.reason = sample.arm == "new" ? of_new : "because";
    }
    return find_reserved(samples, experiment).why_not;
  };
  EXPECT_EQ(set(SampleStatus::unsupported, "because"), "base and new cannot run here: because");
  EXPECT_EQ(set(SampleStatus::unsupported, "otherwise"),
            "base cannot run here: because; new cannot run here: otherwise");
  EXPECT_EQ(set(SampleStatus::invalid, "because"),
            "base did not do what its name says: because; new did not do what its name says: "
            "because");
}

TEST(Evidence, stands_when_some_blocks_failed_but_not_when_the_strategy_once_did_not_engage) {
  const Experiment experiment = synthetic::experiment();
  auto samples = synthetic::timed_blocks(experiment, 10, 0.08, 0.02);
  samples[3].status = SampleStatus::crash;
  EXPECT_EQ(find_time(samples, experiment).comparison.pairs, 9u);
  samples[3].status = SampleStatus::invalid;
  EXPECT_EQ(find_time(samples, experiment).without, ClaimVerdict::invalid);
}

TEST(Evidence, of_a_device_this_build_does_not_have_names_the_device) {
  const Finding finding = find_time({}, synthetic::experiment("imaginary"));
  EXPECT_EQ(finding.without, ClaimVerdict::not_testable_here);
  EXPECT_THAT(finding.why_not, HasSubstr("'imaginary'"));
}

TEST(Evidence, of_a_metric_the_device_does_not_have_says_so) {
  const Experiment experiment = synthetic::experiment("meta");
  const Finding finding = find_time(synthetic::timed_blocks(experiment, 2, 0, 0), experiment);
  EXPECT_EQ(finding.without, ClaimVerdict::not_testable_here);
  EXPECT_EQ(finding.reason_code, "metric_absent");
}

TEST(Evidence, of_one_arm_is_its_own_value) {
  const Experiment experiment = synthetic::experiment();
  const auto samples = synthetic::reserved_blocks(experiment, 1000, 380);
  const Finding finding =
      find(SampleTable(samples), experiment, "", "new", find_metric(kReserved), Scale::difference);
  EXPECT_EQ(finding.comparison.theta, 380);
  EXPECT_FALSE(finding.baseline_value);
}

}  // namespace
}  // namespace headroom::evidence_test
