#include "harness/verdicts/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/results/schema_check.h"
#include "harness/verdicts/explain.h"
#include "harness/verdicts/verify.h"
#include "tests/unit/support/synthetic_samples.h"
#include "tests/unit/verdicts/checked_verdicts.h"

namespace headroom::control_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::verdicts_of;

// `base` has no effect, and `new` has the injected one.
Experiment control(const std::string& inject, const std::string& device = "host") {
  Experiment experiment = synthetic::experiment(device, "suite/control");
  experiment.kind = ExperimentKind::control;
  experiment.arms[1].cell = experiment.arms[0].cell;
  experiment.arms[1].cell.inject = Spec::parse(inject);
  return experiment;
}

Control judge(const Experiment& experiment, const std::vector<Sample>& samples) {
  static std::vector<Experiment> experiments;  // judgements point into it
  experiments = {experiment};
  return judge_controls(experiments, SampleTable(samples)).at(0);
}

std::vector<Sample> leaking(const Experiment& experiment, Bytes bytes_per_step) {
  auto samples = synthetic::reserved_blocks(experiment, 100, 100);
  for (Sample& sample : samples)
    for (Bytes step = 0; step < 6; ++step)
      sample.ledger.allocated_after_step.push_back(
          1000 + (sample.arm == "new" ? step * bytes_per_step : 0));
  return samples;
}

// A claim on times that holds beside a control with this effect in it.
VerifyInput beside_a_control(double effect, double spread = 0.004) {
  VerifyInput input;
  input.claims = {synthetic::claim("cuda")};
  input.claims[0].parts = {synthetic::direction("steady_step_time_ns", 1)};
  input.experiments = experiments_of(input.claims[0]);
  input.samples = synthetic::timed_blocks(synthetic::experiment("cuda"), 12, 0.2, 0.004);
  input.experiments.push_back(control("slowdown"));
  synthetic::append(input.samples,
                    synthetic::timed_blocks(control("slowdown"), 10, effect, spread));
  return input;
}

TEST(Control, is_seen_when_the_interval_lies_above_zero) {
  const Experiment experiment = control("slowdown(share=0.061)");
  const Control seen = judge(experiment, synthetic::timed_blocks(experiment, 10, 0.06, 0.02));
  EXPECT_EQ(seen.detection, Detection::detected);
  EXPECT_THAT(seen.why, AllOf(HasSubstr("6.1 % of the step's own time"), HasSubstr("Detected"),
                              HasSubstr("10 pairs")));
}

TEST(Control, is_missed_when_the_noise_hides_it_and_says_what_would_have_shown) {
  const Experiment experiment = control("slowdown");
  const Control missed = judge(experiment, synthetic::timed_blocks(experiment, 10, 0.06, 0.3));
  EXPECT_EQ(missed.detection, Detection::missed);
  EXPECT_THAT(missed.why,
              AllOf(HasSubstr("Missed"), HasSubstr("would have been detected reliably")));
}

TEST(Control, is_missed_when_the_effect_goes_the_other_way) {
  const Experiment experiment = control("slowdown");
  EXPECT_EQ(judge(experiment, synthetic::timed_blocks(experiment, 10, -0.2, 0.01)).detection,
            Detection::missed);
}

TEST(Control, is_not_tested_with_fewer_pairs_than_an_interval_takes) {
  const Experiment experiment = control("slowdown");
  const Control untested = judge(experiment, synthetic::timed_blocks(experiment, 5, 0.5, 0.01));
  EXPECT_EQ(untested.detection, Detection::untested);
  EXPECT_THAT(untested.why, HasSubstr("5 pairs are too few"));
}

TEST(Control, is_not_tested_where_the_device_computes_nothing) {
  const Experiment experiment = control("slowdown", "meta");
  EXPECT_EQ(judge(experiment, synthetic::timed_blocks(experiment, 10, 0.5, 0.01)).detection,
            Detection::untested);
}

TEST(Control, finds_a_leak_exactly_or_not_at_all) {
  const Experiment experiment = control("leak");
  const Control seen = judge(experiment, leaking(experiment, 4096));
  EXPECT_EQ(seen.detection, Detection::detected);
  EXPECT_TRUE(seen.finding.comparison.exact);
  EXPECT_THAT(seen.why, HasSubstr("+4.00 KiB (exact)"));
  EXPECT_EQ(judge(experiment, leaking(experiment, 0)).detection, Detection::missed);
}

TEST(Control, without_its_clean_arm_says_nothing) {
  std::vector<Experiment> experiments = {control("leak")};
  experiments[0].arms.erase(experiments[0].arms.begin());
  EXPECT_THAT(judge_controls(experiments, SampleTable({})), IsEmpty());
}

TEST(Sensitivity, lets_verdicts_on_times_stand_when_every_effect_was_seen) {
  const auto verdicts = verdicts_of(beside_a_control(0.06));
  EXPECT_EQ(verdicts["sensitivity"]["status"], "sensitive");
  EXPECT_EQ(verdicts["controls"][0]["outcome"], "seen");
  EXPECT_EQ(verdicts["claims"][0]["verdict"], "REPRODUCED");
  EXPECT_EQ(distrust_of(verdicts.dump()), "");
}

TEST(Sensitivity, takes_the_word_from_times_when_an_effect_was_missed) {
  const auto verdicts = verdicts_of(beside_a_control(0.06, 0.3));
  EXPECT_EQ(verdicts["sensitivity"]["status"], "insensitive");
  EXPECT_EQ(verdicts["claims"][0]["verdict"], "INCONCLUSIVE");
  EXPECT_EQ(verdicts["matrix"][1]["comparisons"]["steady_step_time_ns"]["reason_code"],
            "insensitive");
  EXPECT_THAT(distrust_of(verdicts.dump()), HasSubstr("not detected"));
}

TEST(Sensitivity, leaves_exact_verdicts_alone) {
  VerifyInput input = beside_a_control(0.06, 0.3);
  for (Sample& sample : input.samples)
    if (sample.arm == "new") sample.ledger.reserved.overall_peak = 200;
  EXPECT_EQ(
      verdicts_of(input)["matrix"][1]["comparisons"]["reserved_bytes.overall_peak"]["verdict"],
      "WORSE");
}

TEST(Sensitivity, is_not_tested_without_controls_or_with_exact_ones_alone) {
  EXPECT_EQ(sensitivity_of({}).status, "not tested");
  const Experiment experiment = control("leak");
  EXPECT_EQ(sensitivity_of({judge(experiment, leaking(experiment, 4096))}).status, "not tested");
}

TEST(Controls, stay_out_of_the_matrix) {
  const auto verdicts = verdicts_of(beside_a_control(0.06));
  for (const auto& entry : verdicts["matrix"]) EXPECT_NE(entry["experiment"], "suite/control");
}

}  // namespace
}  // namespace headroom::control_test
