#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/verdicts/judged.h"

namespace headroom::judgement_test {
namespace {

using testing::claim_on;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::judge;
using testing::judge_as_planned;
using testing::kReserved;
using testing::kTime;
using testing::only_part;
using ::testing::StartsWith;
using testing::timed;

TEST(Judgement, says_each_word_of_the_data_made_for_it) {
  struct Case {
    double effect, spread;
    ClaimVerdict word;
  };
  // Claimed: +8.7 % ± half of it; margin 3 %. On the log scale: 0.0834 ± 0.0417, margin 0.0296.
  const std::vector<Case> cases = {
      {0.083, 0.004, ClaimVerdict::reproduced}, {0.0355, 0.001, ClaimVerdict::weaker},
      {0.20, 0.004, ClaimVerdict::stronger},    {0.11, 0.07, ClaimVerdict::direction_only},
      {0.001, 0.004, ClaimVerdict::refuted},    {-0.10, 0.004, ClaimVerdict::refuted},
      {0.01, 0.10, ClaimVerdict::inconclusive},
  };
  const Claim claim = claim_on("cuda", synthetic::number(kTime, 0.087, 0.5));
  for (const Case& given : cases) {
    const auto judgement = judge(claim, timed("cuda", given.effect, given.spread));
    EXPECT_EQ(judgement.verdict, given.word)
        << to_string(judgement.verdict) << " for " << given.effect << " ± " << given.spread << ": "
        << judgement.why;
  }
}

TEST(Judgement, calls_a_claim_refuted_when_the_arms_are_exchanged) {
  Claim claim = claim_on("cuda", synthetic::direction(kTime, 1));
  const auto samples = timed("cuda", 0.2, 0.004);
  EXPECT_EQ(judge(claim, samples).verdict, ClaimVerdict::reproduced);
  std::swap(claim.parts[0].baseline, claim.parts[0].treatment);
  EXPECT_EQ(judge(claim, samples).verdict, ClaimVerdict::refuted);
}

TEST(Judgement, on_another_device_is_an_analogue_and_leaves_the_claim_untested) {
  const auto judgement =
      judge(claim_on("host", synthetic::direction(kTime, 1)), timed("host", 0.2, 0.004));
  EXPECT_EQ(judgement.verdict, ClaimVerdict::not_testable_here);
  ASSERT_EQ(judgement.by_device.size(), 1u);
  EXPECT_FALSE(judgement.by_device[0].own);
  EXPECT_EQ(judgement.by_device[0].verdict, ClaimVerdict::reproduced);
}

TEST(Judgement, takes_simulated_bytes_under_the_engines_own_rules_for_its_own) {
  const Claim claim = claim_on("meta", synthetic::number(kReserved, -0.62, 0.1));
  const Experiment experiment = synthetic::experiment("meta");
  const auto judgement = judge(claim, synthetic::reserved_blocks(experiment, 1000, 380));
  EXPECT_EQ(judgement.verdict, ClaimVerdict::reproduced);
  EXPECT_TRUE(only_part(judgement).own);
  EXPECT_EQ(only_part(judgement).basis, Basis::simulated);
}

TEST(Judgement, takes_them_for_an_analogue_under_other_rules_or_on_another_rung) {
  const auto samples = synthetic::reserved_blocks(synthetic::experiment("meta"), 1000, 380);
  Claim claim = claim_on("meta", synthetic::number(kReserved, -0.62, 0.1));
  claim.subject.allocators = {"caching"};
  EXPECT_FALSE(only_part(judge(claim, samples)).own);
  claim = claim_on("meta", synthetic::direction("requested_bytes.initial", -1));
  EXPECT_FALSE(only_part(judge(claim, samples)).own);
}

TEST(Judgement, of_a_missing_device_is_not_testable_and_says_what_it_needs) {
  const auto judgement = judge(claim_on("cuda", synthetic::direction(kTime, 1)), {});
  EXPECT_EQ(judgement.verdict, ClaimVerdict::not_testable_here);
  EXPECT_THAT(only_part(judgement).would_change, HasSubstr("cuda"));
  EXPECT_THAT(judgement.why, Not(IsEmpty()));
}

TEST(Judgement, of_a_strategy_that_did_not_engage_is_invalid) {
  auto samples = timed("cuda", 0.2, 0.004);
  samples[5].status = SampleStatus::invalid;
  samples[5].reason = "it did not grow";
  const auto judgement = judge(claim_on("cuda", synthetic::direction(kTime, 1)), samples);
  EXPECT_EQ(judgement.verdict, ClaimVerdict::invalid);
  EXPECT_THAT(judgement.why, HasSubstr("it did not grow"));
}

TEST(Judgement, lets_no_noisy_figure_decide_when_the_instrument_is_out_of_calibration) {
  const Claim noisy = claim_on("cuda", synthetic::direction(kTime, 1));
  const auto distrusted = judge(noisy, timed("cuda", 0.2, 0.004), Reliability::out_of_calibration);
  EXPECT_EQ(distrusted.verdict, ClaimVerdict::inconclusive);
  EXPECT_THAT(distrusted.why, HasSubstr("identical configurations"));
  const Claim exact = claim_on("meta", synthetic::number(kReserved, -0.62, 0.1));
  const auto samples = synthetic::reserved_blocks(synthetic::experiment("meta"), 1000, 380);
  EXPECT_EQ(judge(exact, samples, Reliability::out_of_calibration).verdict,
            ClaimVerdict::reproduced);
}

TEST(Judgement, of_an_insensitive_instrument_says_so_and_what_would_help) {
  const auto judgement = judge(claim_on("cuda", synthetic::direction(kTime, 1)),
                               timed("cuda", 0.2, 0.004), Reliability::insensitive);
  EXPECT_EQ(judgement.verdict, ClaimVerdict::inconclusive);
  EXPECT_EQ(only_part(judgement).evidence[0].finding.reason_code, "insensitive");
  EXPECT_THAT(judgement.why, HasSubstr("missed an injected effect"));
  EXPECT_THAT(only_part(judgement).would_change, HasSubstr("headroom selftest"));
}

TEST(Judgement, of_a_bound_looks_at_one_arm) {
  ClaimPart part = synthetic::part(PartKind::cause, Judge::bound, "device_allocations_total");
  part.claimed.at_least = 1;
  const Experiment experiment = synthetic::experiment("cuda");
  auto samples = synthetic::reserved_blocks(experiment, 10, 10);
  EXPECT_EQ(judge(claim_on("cuda", part), samples).verdict, ClaimVerdict::refuted);
  for (Sample& sample : samples) sample.ledger.device_allocations[4] = 1;
  EXPECT_EQ(judge(claim_on("cuda", part), samples).verdict, ClaimVerdict::reproduced);
}

// A claim with two parts, of which only that on experiment `x` was planned and has samples.
ClaimJudgement judge_with_one_part_left_out(ClaimPart planned, ClaimPart left_out) {
  Claim claim = claim_on("meta", std::move(planned));
  claim.experiments.push_back(claim.experiments[0]);
  claim.experiments[1].name = "y";
  left_out.name = "the other";
  left_out.experiments = {"y"};
  claim.parts.push_back(std::move(left_out));
  const Experiment experiment = synthetic::experiment("meta");
  return judge_as_planned(claim, {experiment}, synthetic::reserved_blocks(experiment, 1000, 380));
}

TEST(Judgement, rests_on_the_parts_that_a_filter_left_in_and_names_the_others) {
  const auto judgement = judge_with_one_part_left_out(synthetic::number(kReserved, -0.62, 0.1),
                                                      synthetic::number(kReserved, -0.1, 0.1));
  EXPECT_EQ(judgement.verdict, ClaimVerdict::reproduced);
  EXPECT_THAT(judgement.why, EndsWith("Left out of this run: “the other”."));
}

TEST(Judgement, does_not_reproduce_a_number_that_a_filter_left_out) {
  const auto judgement = judge_with_one_part_left_out(synthetic::direction(kReserved, -1),
                                                      synthetic::number(kReserved, -0.62, 0.1));
  EXPECT_EQ(judgement.verdict, ClaimVerdict::direction_only);
}

TEST(Judgement, widens_intervals_when_several_claims_are_judged_together) {
  const auto width_with = [](int claims_together) {
    std::vector<Claim> claims;
    std::vector<Experiment> planned;
    std::vector<Sample> samples;
    for (int i = 0; i < claims_together; ++i) {
      Claim claim = claim_on("cuda", synthetic::direction(kTime, 1));
      claim.id = "C" + std::to_string(i);
      const Experiment experiment = synthetic::experiment("cuda", claim.id + "/x");
      synthetic::append(samples, synthetic::timed_blocks(experiment, 12, 0.01, 0.1));
      planned.push_back(experiment);
      claims.push_back(std::move(claim));
    }
    const auto judgements = judge_claims(claims, planned, SampleTable(samples), Reliability::full);
    const Interval interval = only_part(judgements.front()).evidence[0].finding.comparison.ci95;
    return interval.high - interval.low;
  };
  EXPECT_GT(width_with(6), width_with(1));
}

TEST(Judgement, counts_a_comparison_two_parts_look_at_once) {
  Claim claim = claim_on("cuda", synthetic::direction(kTime, 1));
  claim.parts.push_back(synthetic::number(kTime, 0.087, 0.5));
  const auto judgement = judge(claim, timed("cuda", 0.083, 0.004));
  const Evidence& evidence = only_part(judgement).evidence[0];
  EXPECT_DOUBLE_EQ(evidence.p_adjusted.value(), evidence.finding.comparison.p);
}

TEST(Judgement, tells_how_many_pairs_would_decide_what_stays_open) {
  const auto judgement =
      judge(claim_on("cuda", synthetic::number(kTime, 0.087, 0.5)), timed("cuda", 0.01, 0.1));
  EXPECT_THAT(only_part(judgement).would_change, StartsWith("About "));
  EXPECT_THAT(only_part(judgement).would_change, HasSubstr("pairs instead of 12"));
}

TEST(Judgement, asks_for_a_full_pilot_before_anything_else) {
  const auto judgement =
      judge(claim_on("cuda", synthetic::direction(kTime, 1)), timed("cuda", 0.2, 0.004, 4));
  EXPECT_EQ(judgement.verdict, ClaimVerdict::inconclusive);
  EXPECT_EQ(only_part(judgement).would_change, "At least 10 pairs instead of 4.");
}

TEST(Judgement, mentions_a_refuted_cause_beside_the_word_of_the_effect) {
  Claim claim = claim_on("cuda", synthetic::number(kTime, 0.087, 0.5));
  ClaimPart cause =
      synthetic::part(PartKind::cause, Judge::bound, "steady_device_allocations_per_step");
  cause.claimed.at_least = 1;
  claim.parts.push_back(cause);
  const auto judgement = judge(claim, timed("cuda", 0.083, 0.004));
  EXPECT_EQ(judgement.verdict, ClaimVerdict::conditional);
  EXPECT_THAT(judgement.why, HasSubstr("The stated cause is REFUTED."));
}

TEST(Judgement, names_the_parts_that_hold_and_those_that_do_not) {
  Claim claim = claim_on("cuda", synthetic::direction(kTime, 1));
  claim.parts.push_back(synthetic::direction(kTime, -1));
  claim.parts[0].name = "slower";
  claim.parts[1].name = "faster";
  const auto judgement = judge(claim, timed("cuda", 0.2, 0.004));
  EXPECT_EQ(judgement.verdict, ClaimVerdict::conditional);
  EXPECT_EQ(judgement.why, "REFUTED: “faster”. REPRODUCED: “slower”.");
}

TEST(Judgement, adds_the_parts_that_differ_to_the_sentence_of_the_one_that_decides) {
  Claim claim = claim_on("cuda", synthetic::number(kTime, 2, 0.1));
  claim.parts.push_back(synthetic::direction(kTime, 1));
  claim.parts[1].name = "slower";
  const auto judgement = judge(claim, timed("cuda", 0.2, 0.004));
  EXPECT_EQ(judgement.verdict, ClaimVerdict::weaker);
  EXPECT_THAT(judgement.why, StartsWith(only_part(judgement).why));
  EXPECT_THAT(judgement.why, EndsWith(" REPRODUCED: “slower”."));
}

}  // namespace
}  // namespace headroom::judgement_test
