#include "harness/verdicts/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness/results/schema_check.h"
#include "tests/unit/support/synthetic_samples.h"
#include "tests/unit/verdicts/checked_verdicts.h"

namespace headroom::verify_test {
namespace {

using ::testing::HasSubstr;
using testing::verdicts_of;

constexpr const char* kTime = "steady_step_time_ns";

// A claim with one part and the experiments that belong to it.
VerifyInput input_of(ClaimPart part, const std::string& device, std::vector<Sample> samples) {
  VerifyInput input;
  input.claims = {synthetic::claim(device)};
  input.claims[0].parts = {std::move(part)};
  input.experiments = experiments_of(input.claims[0]);
  input.samples = std::move(samples);
  return input;
}

VerifyInput timed_input(const std::string& device = "host", double effect = 0.2) {
  return input_of(synthetic::direction(kTime, 1), device,
                  synthetic::timed_blocks(synthetic::experiment(device), 12, effect, 0.004));
}

// Two identical configurations, of which one is slower by `effect`.
VerifyInput same_cell_input(double effect, Calibration before) {
  VerifyInput input;
  Experiment experiment = synthetic::experiment();
  experiment.arms[1].cell = experiment.arms[0].cell;
  input.experiments = {experiment};
  input.samples = synthetic::timed_blocks(experiment, 10, effect, 0.01);
  input.calibration = before;
  return input;
}

TEST(Verdicts, keep_to_the_schema_even_without_anything) {
  const auto verdicts = verdicts_of({});
  EXPECT_EQ(verdicts["headline"], "Nothing was measured.");
  EXPECT_TRUE(verdicts["counts"].empty());
}

TEST(Verdicts, say_where_rare_slow_steps_tell_otherwise_than_the_usual_ones) {
  VerifyInput input = timed_input("host", 0.2);
  const auto tail_of = [](const nlohmann::json& verdicts) {
    return verdicts["matrix"][1]["comparisons"][kTime]["tail"];
  };
  const auto without = verdicts_of(input);
  EXPECT_TRUE(tail_of(without)["why"].is_null());
  for (Sample& sample : input.samples)
    if (sample.arm == "new" && sample.block % 3 != 0) sample.step_time_ns.back() *= 4;
  const auto with = verdicts_of(input);
  EXPECT_EQ(with["matrix"][1]["comparisons"][kTime]["theta"],
            without["matrix"][1]["comparisons"][kTime]["theta"]);
  EXPECT_THAT(tail_of(with)["why"].get<std::string>(), HasSubstr("Rare slow steps"));
  const auto& part = with["claims"][0]["parts"][0]["verdicts"][0];
  EXPECT_THAT(part["why"].get<std::string>(), HasSubstr("Rare slow steps"));
  EXPECT_THAT(part["evidence"][0]["why"].get<std::string>(), HasSubstr("Rare slow steps"));
}

TEST(Verdicts, keep_to_the_schema_for_every_way_a_sample_can_end) {
  for (const auto status :
       {SampleStatus::ok, SampleStatus::oom, SampleStatus::crash, SampleStatus::timeout,
        SampleStatus::unsupported, SampleStatus::invalid}) {
    VerifyInput input = timed_input();
    for (Sample& sample : input.samples)
      if (sample.arm == "new") sample.status = status;
    const auto verdicts = verdicts_of(input);
    EXPECT_EQ(verdicts["claims"].size(), 1u);
    EXPECT_EQ(verdicts["matrix"].size(), 2u) << "no arm vanishes";
  }
}

TEST(Verdicts, keep_to_the_schema_with_too_few_pairs_for_an_interval) {
  VerifyInput input = timed_input();
  input.samples.resize(4);
  const auto verdicts = verdicts_of(input);
  const auto& comparison = verdicts["matrix"][1]["comparisons"][kTime];
  EXPECT_TRUE(comparison["ci95"][0].is_null());
  EXPECT_EQ(comparison["verdict"], "INCONCLUSIVE");
}

TEST(Verdicts, state_how_many_pairs_a_noisy_comparison_wants) {
  VerifyInput input = timed_input();
  input.samples = synthetic::timed_blocks(synthetic::experiment("host"), 12, 0, 0.1);
  const auto comparisons = verdicts_of(input)["matrix"][1]["comparisons"];
  EXPECT_GT(comparisons[kTime]["wanted_pairs"], 100);
  EXPECT_TRUE(comparisons["reserved_bytes.overall_peak"]["wanted_pairs"].is_null());
}

TEST(Verdicts, say_of_an_analogue_that_the_claim_is_not_tested) {
  const auto claim = verdicts_of(timed_input("host"))["claims"][0];
  EXPECT_EQ(claim["verdict"], "NOT-TESTABLE-HERE");
  EXPECT_EQ(claim["verdict_by_device"][0]["relation"], "analogue");
  EXPECT_EQ(claim["verdict_by_device"][0]["verdict"], "REPRODUCED");
}

TEST(Verdicts, count_claims_by_their_word) {
  EXPECT_EQ(verdicts_of(timed_input("cuda"))["counts"]["REPRODUCED"], 1);
}

TEST(Verdicts, name_every_excluded_block_and_the_arm) {
  VerifyInput input = timed_input();
  input.samples[5].probe_before_gflops = 10;
  const auto verdicts = verdicts_of(input);
  ASSERT_EQ(verdicts["exclusions"].size(), 1u);
  EXPECT_EQ(verdicts["exclusions"][0]["block"], 2);
  EXPECT_THAT(verdicts["exclusions"][0]["why"].get<std::string>(), HasSubstr("beside new"));
  EXPECT_EQ(verdicts["matrix"][1]["comparisons"][kTime]["excluded_pairs"], 1);
}

TEST(Verdicts, count_what_a_disturbed_machine_left_undecided) {
  VerifyInput input = timed_input();
  input.claims.clear();
  EXPECT_THAT(verdicts_of(input)["headline"].get<std::string>(),
              HasSubstr("1 of 2 comparisons differ beyond the margin."));
  for (Sample& sample : input.samples)
    sample.probe_before_gflops = sample.block == 0 && sample.arm == "base" ? 500 : 10;
  EXPECT_THAT(verdicts_of(input)["headline"].get<std::string>(),
              HasSubstr("0 of 2 comparisons differ beyond the margin, 1 undecided."));
}

TEST(Verdicts, list_a_crash_as_a_failure_and_running_out_of_memory_as_a_result) {
  VerifyInput input = timed_input();
  input.samples[1].status = SampleStatus::crash;
  input.samples[1].reason = "signal 11";
  input.samples[3].status = SampleStatus::oom;
  const auto verdicts = verdicts_of(input);
  ASSERT_EQ(verdicts["failures"].size(), 1u);
  EXPECT_EQ(verdicts["failures"][0]["reason"], "signal 11");
  EXPECT_THAT(verdicts["matrix"][1]["reason"].get<std::string>(), HasSubstr("2 of 12 samples"));
}

TEST(Verdicts, put_the_largest_disagreement_first) {
  VerifyInput input = timed_input("cuda", 0.5);
  input.claims[0].parts = {synthetic::number(kTime, 0.087, 0.5)};
  ClaimPart bytes = synthetic::number("reserved_bytes.initial", -0.62, 0.1);
  bytes.name = "bytes";
  input.claims[0].parts.push_back(bytes);
  for (Sample& sample : input.samples)
    if (sample.arm == "new") sample.ledger.reserved.initial = 1;
  const auto surprises = verdicts_of(input)["surprises"];
  ASSERT_EQ(surprises.size(), 2u);
  EXPECT_THAT(surprises[0].get<std::string>(), HasSubstr("bytes: claimed"));
  EXPECT_THAT(surprises[1].get<std::string>(), HasSubstr("number: claimed"));
}

TEST(Verdicts, compare_every_arm_of_the_matrix_with_the_first) {
  const auto matrix = verdicts_of(timed_input())["matrix"];
  EXPECT_TRUE(matrix[0]["baseline_arm"].is_null());
  EXPECT_EQ(matrix[1]["baseline_arm"], "base");
  EXPECT_EQ(matrix[1]["comparisons"][kTime]["verdict"], "WORSE");
  EXPECT_EQ(matrix[1]["comparisons"]["reserved_bytes.overall_peak"]["verdict"], "SAME");
  EXPECT_EQ(matrix[1]["values"]["reserved_bytes.initial"], 100);
  EXPECT_LT(matrix[1]["intervals"][kTime][0], matrix[1]["values"][kTime]);
  EXPECT_GT(matrix[1]["intervals"][kTime][1], matrix[1]["values"][kTime]);
}

TEST(Verdicts, call_no_difference_of_many_significant_that_chance_explains) {
  VerifyInput input;
  for (int i = 0; i < 20; ++i) {
    const Experiment experiment = synthetic::experiment("host", "suite/" + std::to_string(i));
    input.experiments.push_back(experiment);
    // One of twenty has an interval that just leaves 0 out.
    const bool lucky = i == 7;
    auto samples = synthetic::timed_blocks(experiment, 8, lucky ? 0.05 : 0.0, 0.02);
    if (lucky)
      synthetic::set_step_time(samples[1], static_cast<double>(samples[0].step_time_ns[0]) * 0.999);
    synthetic::append(input.samples, std::move(samples));
  }
  const auto comparison = verdicts_of(input)["matrix"][15]["comparisons"][kTime];
  EXPECT_LT(comparison["p"], 0.05);
  EXPECT_GT(comparison["p_adj"], 0.05);
  EXPECT_EQ(comparison["verdict"], "INCONCLUSIVE");
  EXPECT_EQ(comparison["reason_code"], "one_of_many");
}

TEST(Calibration, counts_arms_that_are_the_same_cell) {
  EXPECT_EQ(calibration_of(same_cell_input(0, {})).aa_comparisons, 1);
  EXPECT_EQ(calibration_of(same_cell_input(0, {})).false_alarms, 0);
  EXPECT_EQ(calibration_of(same_cell_input(0.2, {})).false_alarms, 1);
  EXPECT_EQ(calibration_of(timed_input()).aa_comparisons, 0) << "different cells are no A/A";
}

TEST(Calibration, takes_forty_comparisons) {
  const auto status = [](int comparisons, int alarms) {
    VerifyInput input;
    input.calibration = {comparisons, alarms};
    return verdicts_of(input)["calibration"]["status"].get<std::string>();
  };
  EXPECT_EQ(status(39, 0), "not yet calibrated");
  EXPECT_EQ(status(40, 2), "calibrated");
  EXPECT_EQ(status(40, 10), "out of calibration");
}

TEST(Calibration, adds_this_run_to_those_before) {
  const auto calibration = verdicts_of(same_cell_input(0, {39, 1}))["calibration"];
  EXPECT_EQ(calibration["aa_comparisons"], 40);
  EXPECT_EQ(calibration["status"], "calibrated");
}

TEST(Calibration, that_has_failed_takes_the_word_from_times) {
  VerifyInput input = timed_input("cuda");
  input.calibration = {40, 20};
  EXPECT_EQ(verdicts_of(input)["claims"][0]["verdict"], "INCONCLUSIVE");
}

}  // namespace
}  // namespace headroom::verify_test
