// Plans for buffers with gaps, alignments, fixed offsets or hints, compared with exhaustive search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/planning/greedy.h"
#include "harness/planning/search.h"

namespace headroom::placement_test {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Outcome = PlanSearch::Outcome;

// Whether a buffer uses one of its bytes at a moment, by definition.
bool uses(const PlanBuffer& buffer, std::int64_t time, Bytes byte) {
  if (time < buffer.lower || time >= buffer.upper || byte >= buffer.size) return false;
  for (const PlanGap& gap : buffer.gaps)
    if (time >= gap.lower && time < gap.upper) return byte >= gap.begin && byte < gap.end;
  return true;
}

bool overlap(const PlanBuffer& a, Bytes a_offset, const PlanBuffer& b, Bytes b_offset) {
  for (std::int64_t time = std::max(a.lower, b.lower); time < std::min(a.upper, b.upper); ++time)
    for (Bytes byte = 0; byte < a.size; ++byte)
      if (uses(a, time, byte) && a_offset + byte >= b_offset &&
          uses(b, time, a_offset + byte - b_offset))
        return true;
  return false;
}

// Tries every plan of a few small buffers.
bool fits_somehow(const std::vector<PlanBuffer>& buffers, Bytes capacity, Offsets& offsets) {
  if (offsets.size() == buffers.size()) return true;
  const PlanBuffer& next = buffers[offsets.size()];
  for (Bytes at = 0; at + next.size <= capacity; ++at) {
    if (at % next.alignment != 0 || (next.offset && *next.offset != at)) continue;
    bool free = true;
    for (std::size_t i = 0; i < offsets.size() && free; ++i)
      free = !overlap(buffers[i], offsets[i], next, at);
    if (!free) continue;
    offsets.push_back(at);
    if (fits_somehow(buffers, capacity, offsets)) return true;
    offsets.pop_back();
  }
  return false;
}

enum class Gaps { none, empty, with_bytes };

std::vector<PlanBuffer> random_problem(std::mt19937& random, std::size_t count, Gaps gaps) {
  std::vector<PlanBuffer> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    const auto lower = static_cast<std::int64_t>(random() % 7);
    PlanBuffer buffer = {.lower = lower,
                         .upper = lower + 1 + static_cast<std::int64_t>(random() % 6),
                         .size = 1 + random() % 5,
                         .alignment = 1 + random() % 2};
    std::int64_t from = buffer.lower;
    while (gaps != Gaps::none && random() % 2 == 0 && from < buffer.upper) {
      const std::int64_t begin = from + static_cast<std::int64_t>(random()) % (buffer.upper - from);
      const std::int64_t end =
          begin + 1 + static_cast<std::int64_t>(random()) % (buffer.upper - begin);
      PlanGap gap{.lower = begin, .upper = end};
      if (gaps == Gaps::with_bytes) {
        gap.begin = random() % buffer.size;
        gap.end = gap.begin + random() % (buffer.size - gap.begin + 1);
      }
      buffer.gaps.push_back(gap);
      from = end;
    }
    if (random() % 5 == 0) buffer.offset = random() % 6 * buffer.alignment;
    if (random() % 3 == 0) buffer.hint = random() % 12;
    buffers.push_back(buffer);
  }
  return buffers;
}

class Placement : public ::testing::TestWithParam<Gaps> {};

TEST_P(Placement, is_found_where_trying_everything_finds_one_and_only_there) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int possible = 0, impossible = 0;
  for (int round = 0; round < 300; ++round) {
    const auto buffers = random_problem(random, 6, GetParam());
    const Bytes capacity = least_bytes(buffers) + random() % 2;
    Offsets offsets;
    const bool fits = fits_somehow(buffers, capacity, offsets);
    (fits ? possible : impossible)++;
    const PlanSearch found = search_plan(buffers, capacity, steady_clock::now() + seconds(60));
    ASSERT_EQ(found.outcome, fits ? Outcome::found : Outcome::infeasible) << "round " << round;
    if (fits) {
      EXPECT_THAT(plan_violations(buffers, found.offsets, capacity), IsEmpty());
    }
  }
  EXPECT_GT(possible, 0);
  EXPECT_GT(impossible, 0);
}

TEST_P(Placement, is_sound_in_every_greedy_order) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int planned = 0;
  for (int round = 0; round < 200; ++round) {
    const auto buffers = random_problem(random, round % 10 == 0 ? 100 : 6, GetParam());
    if (!fixed_violations(buffers).empty()) continue;
    ++planned;
    for (const PlanOrder order : {PlanOrder::start, PlanOrder::end, PlanOrder::lifetime,
                                  PlanOrder::area, PlanOrder::size, PlanOrder::hint}) {
      const Offsets plan = plan_greedily(buffers, order);
      EXPECT_THAT(plan_violations(buffers, plan, makespan(buffers, plan)), IsEmpty());
      EXPECT_GE(makespan(buffers, plan), least_bytes(buffers));
    }
  }
  EXPECT_GT(planned, 0);
}

TEST_P(Placement, is_judged_as_by_looking_at_every_byte_at_every_moment) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int sound = 0, wrong = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto buffers = random_problem(random, 3, GetParam());
    const Bytes capacity = 14;
    Offsets offsets;
    bool expected = true;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      offsets.push_back(buffers[i].offset && random() % 8 != 0 ? *buffers[i].offset
                                                               : random() % 12);
      expected = expected && offsets[i] + buffers[i].size <= capacity &&
                 offsets[i] % buffers[i].alignment == 0 &&
                 (!buffers[i].offset || *buffers[i].offset == offsets[i]);
      for (std::size_t j = 0; j < i; ++j)
        expected = expected && !overlap(buffers[i], offsets[i], buffers[j], offsets[j]);
    }
    (expected ? sound : wrong)++;
    ASSERT_EQ(plan_violations(buffers, offsets, capacity).empty(), expected) << "round " << round;
  }
  EXPECT_GT(sound, 0);
  EXPECT_GT(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Placement, Placement,
                         ::testing::Values(Gaps::none, Gaps::empty, Gaps::with_bytes));

TEST(PlacementExamples, puts_a_buffer_into_the_gap_of_another) {
  const std::vector<PlanBuffer> buffers = {
      {.lower = 0, .upper = 4, .size = 2, .gaps = {{.lower = 1, .upper = 3}}},
      {.lower = 1, .upper = 3, .size = 2}};
  EXPECT_EQ(makespan(buffers, plan_greedily(buffers)), 2U);
}

// Each buffer keeps only half of its bytes while the other uses all of its own.
TEST(PlacementExamples, lets_buffers_reach_into_each_other) {
  const std::vector<PlanBuffer> buffers = {
      {.lower = 0, .upper = 10, .size = 2, .gaps = {{.lower = 0, .upper = 5, .end = 1}}},
      {.lower = 0,
       .upper = 10,
       .size = 2,
       .gaps = {{.lower = 5, .upper = 10, .begin = 1, .end = 2}}}};
  EXPECT_EQ(least_bytes(buffers), 3U);
  EXPECT_EQ(search_plan(buffers, 3, steady_clock::now() + seconds(60)).outcome, Outcome::found);
  EXPECT_EQ(search_plan(buffers, 2, steady_clock::now() + seconds(60)).outcome,
            Outcome::infeasible);
}

TEST(PlacementExamples, is_no_higher_than_the_plan_that_hints_describe) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    auto buffers = random_problem(random, 40, Gaps::none);
    for (PlanBuffer& buffer : buffers) buffer.offset.reset();
    Bytes top = 0;  // a valid but bad plan: all buffers in a row
    for (PlanBuffer& buffer : buffers) {
      buffer.hint = align_up(top, buffer.alignment);
      top = *buffer.hint + buffer.size;
    }
    const Offsets plan = plan_greedily(buffers, PlanOrder::hint);
    for (std::size_t i = 0; i < buffers.size(); ++i) EXPECT_LE(plan[i], *buffers[i].hint);
    EXPECT_LE(makespan(buffers, plan_greedily(buffers)), top);
  }
}

TEST(PlacementExamples, is_impossible_where_what_is_fixed_overlaps_or_is_not_aligned) {
  const std::vector<PlanBuffer> over = {{.lower = 0, .upper = 5, .size = 10, .offset = 0},
                                        {.lower = 0, .upper = 9, .size = 3},
                                        {.lower = 4, .upper = 9, .size = 10, .offset = 5}};
  EXPECT_THAT(fixed_violations(over), ::testing::ElementsAre(HasSubstr("buffers 2 and 0 overlap")));
  EXPECT_EQ(search_plan(over, 1000, steady_clock::now() + seconds(60)).outcome,
            Outcome::infeasible);
  const std::vector<PlanBuffer> askew = {
      {.lower = 0, .upper = 5, .size = 10, .alignment = 4, .offset = 6}};
  EXPECT_THAT(fixed_violations(askew), ::testing::ElementsAre(HasSubstr("aligned")));
}

TEST(PlacementExamples, needs_room_up_to_the_end_of_what_is_fixed_highest) {
  const std::vector<PlanBuffer> buffers = {{.lower = 0, .upper = 5, .size = 10, .offset = 90},
                                           {.lower = 0, .upper = 5, .size = 20}};
  EXPECT_EQ(least_bytes(buffers), 100U);
  EXPECT_EQ(plan_greedily(buffers), (Offsets{90, 0}));
}

}  // namespace
}  // namespace headroom::placement_test
