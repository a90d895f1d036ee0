#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/verdicts/judged.h"

namespace headroom::frameworks_own_test {
namespace {

using ::testing::HasSubstr;
using testing::judge;
using testing::kReserved;
using testing::only_part;

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

}  // namespace
}  // namespace headroom::frameworks_own_test
