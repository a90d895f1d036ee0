#include "harness/verdicts/judgement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/support/synthetic_samples.h"

namespace headroom::judgement_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kTime = "steady_step_time_ns";
constexpr const char* kReserved = "reserved_bytes.initial";

ClaimJudgement judge_as_planned(const Claim& claim, const std::vector<Experiment>& planned,
                                const std::vector<Sample>& samples,
                                Reliability reliability = Reliability::full) {
  static std::vector<Claim> claims;  // judgements point into it
  claims = {claim};
  return judge_claims(claims, planned, SampleTable(samples), reliability).front();
}

ClaimJudgement judge(const Claim& claim, const std::vector<Sample>& samples,
                     Reliability reliability = Reliability::full) {
  return judge_as_planned(claim, experiments_of(claim), samples, reliability);
}

const PartVerdict& only_part(const ClaimJudgement& judgement) {
  return judgement.parts.at(0).verdicts.at(0);
}

Claim claim_on(const std::string& device, ClaimPart part) {
  Claim claim = synthetic::claim(device);
  claim.parts = {std::move(part)};
  return claim;
}

std::vector<Sample> timed(const std::string& device, double effect, double spread,
                          int blocks = 12) {
  return synthetic::timed_blocks(synthetic::experiment(device), blocks, effect, spread);
}

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

// A claim that compares two ways in which a framework trains on a virtual card.
struct OnVirtualCard {
  Claim claim;
  std::vector<Sample> samples;
};

OnVirtualCard on_virtual_card(const std::string& engine, const std::string& metric,
                              const std::vector<double>& treatment) {
  OnVirtualCard made;
  made.claim = synthetic::claim("virtual(card=v100-16gb)");
  made.claim.subject.engine = engine;
  made.claim.parts = {synthetic::number(metric, -0.62, 0.1)};
  for (Arm& arm : made.claim.experiments[0].arms)
    arm.cell.scenario = Spec("virtual_gpu", {{"framework", "tensorflow"}});
  const Experiment experiment = experiments_of(made.claim).front();
  for (std::size_t block = 0; block < treatment.size(); ++block) {
    for (const char* arm : {"base", "new"}) {
      Sample sample = synthetic::sample(experiment, arm, static_cast<int>(block));
      sample.ledger_available = false;
      sample.step_time_ns.clear();
      sample.engine = "TensorFlow 9.9";
      sample.figures[metric] = arm == std::string("base") ? 1000 : treatment[block];
      made.samples.push_back(std::move(sample));
    }
  }
  return made;
}

TEST(VirtualCard, gives_a_frameworks_own_bytes_which_decide_claims_about_it) {
  for (const auto& [bytes, word] :
       {std::pair(380.0, ClaimVerdict::reproduced), std::pair(1000.0, ClaimVerdict::refuted)}) {
    const auto [claim, samples] = on_virtual_card("TensorFlow 2", kReserved, {bytes, bytes});
    const auto judgement = judge(claim, samples);
    EXPECT_EQ(judgement.verdict, word) << judgement.why;
    EXPECT_TRUE(only_part(judgement).own);
    EXPECT_EQ(only_part(judgement).basis, Basis::virtual_card);
    EXPECT_EQ(only_part(judgement).subject, "TensorFlow 9.9 on a virtual v100-16gb");
    EXPECT_THAT(judgement.why, HasSubstr("virtual"));
  }
}

TEST(VirtualCard, says_nothing_of_another_framework) {
  const auto [claim, samples] = on_virtual_card("PyTorch", kReserved, {380, 380});
  EXPECT_FALSE(only_part(judge(claim, samples)).own);
  EXPECT_EQ(judge(claim, samples).verdict, ClaimVerdict::not_testable_here);
}

TEST(VirtualCard, lets_processes_differ_by_less_than_a_thousandth) {
  const auto [near, near_samples] =
      on_virtual_card("TensorFlow 2", "allocated_bytes.overall_peak", {380, 380.01});
  EXPECT_EQ(judge(near, near_samples).verdict, ClaimVerdict::reproduced);
  const auto [far, far_samples] =
      on_virtual_card("TensorFlow 2", "allocated_bytes.overall_peak", {380, 382});
  EXPECT_NE(judge(far, far_samples).verdict, ClaimVerdict::reproduced);
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

// A claim on cuda whose one part asks an engine's software, here TensorFlow's, for something.
struct Asked {
  Claim claim;
  std::vector<Sample> samples;
};

Asked ask(PartKind kind, bool is_there, const std::string& engine = "TensorFlow 2") {
  Asked asked;
  asked.claim = synthetic::claim("host");
  asked.claim.subject.engine = engine;
  Arm& arm = asked.claim.experiments[0].arms[1];
  arm.cell.scenario = Spec("interface", {{"engine", "tensorflow"}, {"name", "made_up"}});
  asked.claim.parts = {synthetic::part(kind, Judge::predicate, "interface.works")};
  asked.claim.parts[0].claimed.holds = true;
  asked.claim.parts[0].claimed.at_least = 1;
  const Experiment experiment = experiments_of(asked.claim).front();
  for (int block = 0; block < 2; ++block) {
    asked.samples.push_back(synthetic::sample(experiment, "new", block));
    asked.samples.back().figures["works"] = is_there ? 1 : 0;
    asked.samples.back().note = "AttributeError: no attribute (executed with TensorFlow 9.9).";
  }
  return asked;
}

TEST(Interface, that_is_not_there_makes_the_claim_ill_posed_on_whatever_device) {
  const auto [claim, samples] = ask(PartKind::interface, false);
  const auto judgement = judge(claim, samples);
  EXPECT_EQ(judgement.verdict, ClaimVerdict::ill_posed);
  EXPECT_TRUE(only_part(judgement).own);
  EXPECT_EQ(only_part(judgement).subject, "TensorFlow on host");
  EXPECT_THAT(judgement.why, HasSubstr("TensorFlow 9.9"));
}

TEST(Interface, that_is_there_decides_nothing) {
  const auto [claim, samples] = ask(PartKind::interface, true);
  EXPECT_EQ(judge(claim, samples).verdict, ClaimVerdict::not_testable_here);
}

TEST(Interface, of_another_engine_is_no_evidence_on_the_subject) {
  const auto [claim, samples] = ask(PartKind::interface, false, "PyTorch");
  EXPECT_FALSE(only_part(judge(claim, samples)).own);
  EXPECT_EQ(judge(claim, samples).verdict, ClaimVerdict::not_testable_here);
}

TEST(Judgement, of_a_predicate_is_a_yes_or_a_no) {
  const auto [claim, samples] = ask(PartKind::direction, true);
  EXPECT_EQ(judge(claim, samples).verdict, ClaimVerdict::reproduced);
  EXPECT_THAT(judge(claim, samples).why, HasSubstr("Yes: "));
  const auto [refuted, none] = ask(PartKind::direction, false);
  EXPECT_EQ(judge(refuted, none).verdict, ClaimVerdict::refuted);
  EXPECT_THAT(judge(refuted, none).why, HasSubstr("No: "));
}

// A sweep on meta in which `new` reserves the given shares of the 1000 bytes of `base`.
struct SweepCase {
  Claim claim;
  std::vector<Sample> samples;
};

SweepCase sweep_of(const std::vector<std::pair<std::string, Bytes>>& points) {
  SweepCase result;
  result.claim = claim_on("meta", synthetic::number(kReserved, -0.62, 0.1));
  result.claim.experiments[0].sweep = Sweep{"batch", {}};
  for (const auto& [batch, bytes] : points) {
    result.claim.experiments[0].sweep->values.push_back(batch);
    const Experiment experiment = synthetic::experiment("meta", "C1/x/batch=" + batch);
    synthetic::append(result.samples, synthetic::reserved_blocks(experiment, 1000, bytes));
  }
  return result;
}

TEST(Sweep, that_holds_in_part_is_conditional_and_prints_the_range) {
  const auto [claim, samples] =
      sweep_of({{"1", 10}, {"2", 370}, {"4", 385}, {"8", 900}, {"16", 400}});
  const auto judgement = judge(claim, samples);
  EXPECT_EQ(judgement.verdict, ClaimVerdict::conditional);
  EXPECT_EQ(only_part(judgement).holds_for, "x batch 2…4, 16");
  EXPECT_EQ(only_part(judgement).evidence.size(), 5u);
}

TEST(Sweep, that_holds_nowhere_names_where_it_passes_the_claimed_size) {
  const auto [claim, samples] = sweep_of({{"1", 10}, {"2", 800}});
  const auto judgement = judge(claim, samples);
  EXPECT_EQ(judgement.verdict, ClaimVerdict::direction_only);
  EXPECT_THAT(only_part(judgement).holds_for, IsEmpty());
  EXPECT_THAT(judgement.why, HasSubstr("between x batch=1 and x batch=2"));
}

TEST(Sweep, keeps_a_point_that_ran_out_of_memory_and_says_why) {
  auto [claim, samples] = sweep_of({{"1", 380}, {"2", 380}});
  for (Sample& sample : samples) {
    if (sample.experiment != "C1/x/batch=2") continue;
    sample.status = SampleStatus::oom;
    sample.reason = "asked for 5 bytes";
  }
  const auto judgement = judge(claim, samples);
  EXPECT_EQ(judgement.verdict, ClaimVerdict::reproduced);
  ASSERT_EQ(only_part(judgement).evidence.size(), 2u);
  EXPECT_EQ(only_part(judgement).evidence[1].verdict, ClaimVerdict::not_testable_here);
  EXPECT_THAT(judgement.why, HasSubstr("asked for 5 bytes"));
}

TEST(Sweep, is_judged_by_the_points_that_the_run_was_to_take) {
  const auto [claim, samples] = sweep_of({{"1", 380}, {"2", 900}});
  std::vector<Experiment> planned = experiments_of(claim);
  planned.pop_back();
  const auto judgement = judge_as_planned(claim, planned, {samples.begin(), samples.begin() + 4});
  EXPECT_EQ(judgement.verdict, ClaimVerdict::reproduced);
  EXPECT_EQ(only_part(judgement).evidence.size(), 1u);
}

TEST(Sweep, stays_open_if_the_run_ended_before_a_point_that_it_was_to_take) {
  const auto [claim, samples] = sweep_of({{"1", 380}, {"2", 900}});
  const auto judgement = judge(claim, {samples.begin(), samples.begin() + 4});
  EXPECT_EQ(judgement.verdict, ClaimVerdict::inconclusive);
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
