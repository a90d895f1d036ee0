// Steps that `planned` serves from a plan; the independent validator checks its placements.
#include <gmock/gmock.h>

#include "harness/base/error.h"
#include "harness/trace/validator.h"
#include "tests/unit/strategies/allocator/decision_log.h"

namespace headroom::planned_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class Planned : public DecisionLog {
 protected:
  // Fragments without a plan, because the 6 MiB do not fit into a hole of 4 MiB.
  void step(Bytes extra = 0) {
    const Block a = take(4 * kMiB + extra);
    const Block b = take(2 * kMiB);
    give(a);
    const Block c = take(6 * kMiB);
    give(b);
    give(c);
  }
};

TEST_F(Planned, serves_a_repeated_step_from_one_segment_at_the_planned_size) {
  make("planned");
  step();
  decisions();
  step();
  EXPECT_EQ(decisions().front(), "segment 2: 8MiB");  // 6 + 2 are alive at once
  EXPECT_EQ(memory().reserved(), 8 * kMiB);
  step();
  EXPECT_EQ(decisions().size(), 6u);
  EXPECT_EQ(allocator().why_not_engaged(), std::nullopt);
}

TEST_F(Planned, serves_a_step_that_leaves_its_plan_by_the_fallback_and_plans_it_anew) {
  make("planned");
  step();
  const auto other = [&] {
    const Block a = take(4 * kMiB);
    const Block b = take(3 * kMiB);
    give(b);
    give(a);
  };
  other();
  EXPECT_THAT(violations(trace()), IsEmpty());
  EXPECT_THAT(allocator().why_not_engaged(), Optional(HasSubstr("no step repeated")));
  other();
  decisions();
  other();
  EXPECT_EQ(decisions().size(), 4u);  // no calls to the device
  EXPECT_EQ(allocator().why_not_engaged(), std::nullopt);
}

TEST_F(Planned, leaves_its_plan_when_a_block_lives_longer_than_planned) {
  make("planned");
  step();
  const Block a = take(4 * kMiB);
  const Block b = take(2 * kMiB);
  const Block c = take(6 * kMiB);  // planned at the place of a, which is still alive
  for (const Block& block : {a, b, c}) give(block);
  EXPECT_THAT(violations(trace()), IsEmpty());
}

TEST_F(Planned, does_not_plan_a_step_of_more_than_100000_events) {
  make("planned");
  const auto long_step = [&] {
    const Block stays = take(kMiB);
    for (int i = 0; i < 50'000; ++i) give(take(2 * kMiB));
    give(stays);
  };
  long_step();
  long_step();
  EXPECT_THAT(allocator().why_not_engaged(), Optional(HasSubstr("no step repeated")));
  step();
  step();
  EXPECT_EQ(allocator().why_not_engaged(), std::nullopt);
}

TEST_F(Planned, keeps_a_plan_for_each_shape) {
  make("planned");
  for (int round = 0; round < 2; ++round) {
    step();
    step(kMiB);
  }
  decisions();
  const std::uint64_t taken = memory().counters().maps + memory().counters().segment_allocations;
  step();
  step(kMiB);
  EXPECT_EQ(memory().counters().maps + memory().counters().segment_allocations, taken);
}

TEST_F(Planned, gives_up_its_segment_before_it_refuses_another_shape) {
  make("planned", "meta(capacity=16MiB)");
  step();
  step();
  const Block large = take(12 * kMiB);
  EXPECT_EQ(large.requested, 12 * kMiB);
  give(large);
}

TEST_F(Planned, keeps_persistent_blocks_out_of_the_steps) {
  make("planned");
  const Block weight = allocator().allocate(kMiB, {.role = Role::weight, .persistent = true});
  step();
  step();
  EXPECT_EQ(allocator().statistics().live_blocks, 1u);
  give(weight);
  EXPECT_THAT(violations(trace()), IsEmpty());
}

}  // namespace
}  // namespace headroom::planned_test
