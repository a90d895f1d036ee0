#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/verdicts/judged.h"

namespace headroom::sweep_test {
namespace {

using testing::claim_on;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::judge;
using testing::judge_as_planned;
using testing::kReserved;
using testing::only_part;

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

}  // namespace
}  // namespace headroom::sweep_test
