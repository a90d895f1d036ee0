// Plans made with every lifetime known in advance, checked by a validator that shares no code with
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "harness/planning/greedy.h"
#include "harness/planning/search.h"
#include "harness/planning/unplaced_buffers.h"
#include "harness/whatif/training_requests.h"

namespace headroom::planning_test {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<PlanBuffer> random_buffers(std::mt19937& random, std::size_t count, Bytes alignment) {
  std::vector<PlanBuffer> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    const auto lower = static_cast<std::int64_t>(random() % 100);
    buffers.push_back({.lower = lower,
                       .upper = lower + 1 + static_cast<std::int64_t>(random() % 30),
                       .size = random() % 50,
                       .alignment = alignment});
  }
  return buffers;
}

// Cuts a rectangle of 100 moments and 1000 bytes into buffers without waste, so the best plan has
// exactly 1000 bytes.
std::vector<PlanBuffer> cut_rectangle(std::mt19937& random, std::size_t count) {
  std::vector<PlanBuffer> buffers = {{.lower = 0, .upper = 100, .size = 1000}};
  while (buffers.size() < count) {
    PlanBuffer& whole = buffers[random() % buffers.size()];
    PlanBuffer part = whole;
    if (random() % 2 == 0 && whole.upper - whole.lower >= 2) {
      part.lower =
          whole.lower + 1 + static_cast<std::int64_t>(random()) % (whole.upper - whole.lower - 1);
      whole.upper = part.lower;
    } else if (whole.size >= 2) {
      part.size = 1 + random() % (whole.size - 1);
      whole.size -= part.size;
    } else {
      continue;
    }
    buffers.push_back(part);
  }
  return buffers;
}

TEST(Planning, counts_a_buffer_from_its_allocation_to_its_release) {
  RequestList list;
  list.blocks = 2;
  list.requests = {{.kind = Request::Kind::alloc, .block = 0, .bytes = 100},
                   {.kind = Request::Kind::alloc, .block = 1, .bytes = 300},
                   {.kind = Request::Kind::free, .block = 0}};
  const auto buffers = buffers_of(list, 256);
  EXPECT_EQ(buffers[0].size, 256U);
  EXPECT_EQ(buffers[0].upper, 2);
  EXPECT_EQ(buffers[1].upper, 3);  // lives to the end
  EXPECT_EQ(peak_live_bytes(buffers), 256U + 512U);
}

TEST(Planning, places_what_never_lives_at_once_on_one_spot) {
  const std::vector<PlanBuffer> buffers = {{.lower = 0, .upper = 5, .size = 10},
                                           {.lower = 5, .upper = 9, .size = 10}};
  EXPECT_EQ(makespan(buffers, plan_greedily(buffers)), 10U);
}

TEST(Planning, is_sound_in_every_greedy_order) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    const auto buffers = random_buffers(random, 200, round % 2 == 0 ? 1 : 16);
    for (const PlanOrder order : {PlanOrder::start, PlanOrder::end, PlanOrder::lifetime,
                                  PlanOrder::area, PlanOrder::size}) {
      const Offsets plan = plan_greedily(buffers, order);
      EXPECT_THAT(plan_violations(buffers, plan, makespan(buffers, plan)), IsEmpty());
      EXPECT_GE(makespan(buffers, plan), peak_live_bytes(buffers));
      EXPECT_LE(makespan(buffers, plan_greedily(buffers)), makespan(buffers, plan));
    }
  }
}

TEST(Planning, gives_what_is_empty_or_never_lives_no_room) {
  const std::vector<PlanBuffer> buffers = {{.lower = 0, .upper = 5, .size = 10},
                                           {.lower = 0, .upper = 5, .size = 0},
                                           {.lower = 3, .upper = 3, .size = 10}};
  EXPECT_EQ(makespan(buffers, plan_greedily(buffers)), 10U);
  EXPECT_THAT(plan_greedily({}), IsEmpty());
}

// Each workload trains several steps, so that values that live across steps are included.
TEST(Planning, comes_within_a_percent_of_the_live_bytes_of_training) {
  for (const std::string workload :
       {"resnet(batch=8,depth=50,image=224,stem=imagenet)", "bert(preset=tiny)", "gan(preset=tiny)",
        "gpt(preset=small)", "gpt(preset=paper,layers=12)"}) {
    SCOPED_TRACE(workload);
    Cell cell;
    cell.workload = Spec::parse(workload);
    cell.rules = "dense";
    const TrainingPlan training = plan_training(*make_workload(cell.workload), cell, cell.rules);
    const auto buffers = buffers_of(training_requests(training, 3), kBlockAlignment);
    const Offsets plan = plan_greedily(buffers);
    const Bytes bound = peak_live_bytes(buffers);
    EXPECT_THAT(plan_violations(buffers, plan, bound + bound / 100), IsEmpty());
  }
}

TEST(Planning, finds_plans_without_waste) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    const auto buffers = cut_rectangle(random, 60);
    const PlanSearch found = search_plan(buffers, 1000, steady_clock::now() + seconds(60));
    ASSERT_EQ(found.outcome, PlanSearch::Outcome::found) << "round " << round;
    EXPECT_THAT(plan_violations(buffers, found.offsets, 1000), IsEmpty());
  }
}

TEST(Planning, never_finds_less_than_what_lives_at_once) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto buffers = random_buffers(random, 100, 1);
  const Bytes too_little = peak_live_bytes(buffers) - 1;
  EXPECT_EQ(search_plan(buffers, too_little, steady_clock::now() + seconds(60)).outcome,
            PlanSearch::Outcome::infeasible);
}

// Tries every placement of a few small buffers.
bool fits_somehow(const std::vector<PlanBuffer>& buffers, Bytes capacity, Offsets& offsets) {
  if (offsets.size() == buffers.size()) return true;
  const PlanBuffer& next = buffers[offsets.size()];
  for (Bytes at = 0; at + next.size <= capacity; at += next.alignment) {
    bool free = true;
    for (std::size_t i = 0; i < offsets.size() && free; ++i)
      free = buffers[i].upper <= next.lower || next.upper <= buffers[i].lower ||
             offsets[i] + buffers[i].size <= at || at + next.size <= offsets[i];
    if (!free) continue;
    offsets.push_back(at);
    if (fits_somehow(buffers, capacity, offsets)) return true;
    offsets.pop_back();
  }
  return false;
}

TEST(Planning, agrees_with_trying_everything_on_small_problems) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int impossible = 0;
  for (int round = 0; round < 150; ++round) {
    std::vector<PlanBuffer> buffers;
    for (int i = 0; i < 8; ++i) {
      const auto lower = static_cast<std::int64_t>(random() % 8);
      buffers.push_back({.lower = lower,
                         .upper = lower + 1 + static_cast<std::int64_t>(random() % 5),
                         .size = 1 + random() % 5,
                         .alignment = 1 + random() % 2});
    }
    const Bytes capacity = peak_live_bytes(buffers);
    Offsets offsets;
    // Sorted by time, the exhaustive search gives up a partial placement earlier.
    std::vector<PlanBuffer> in_order = buffers;
    std::ranges::sort(in_order, {}, &PlanBuffer::lower);
    const bool possible = fits_somehow(in_order, capacity, offsets);
    impossible += possible ? 0 : 1;
    const PlanSearch found = search_plan(buffers, capacity, steady_clock::now() + seconds(60));
    EXPECT_EQ(found.outcome,
              possible ? PlanSearch::Outcome::found : PlanSearch::Outcome::infeasible);
  }
  EXPECT_GT(impossible, 0) << "only one answer was ever asked for";
}

TEST(Planning, plans_low_no_higher_than_greed_does) {
  std::mt19937 random(7);
  const auto buffers = cut_rectangle(random, 20);
  const Offsets plan = plan_low(buffers, steady_clock::now() + seconds(60));
  EXPECT_THAT(plan_violations(buffers, plan, makespan(buffers, plan)), IsEmpty());
  EXPECT_EQ(makespan(buffers, plan), 1000U);
  EXPECT_LE(makespan(buffers, plan), makespan(buffers, plan_greedily(buffers)));
}

TEST(Planning, plans_low_with_more_buffers_than_search_takes) {
  // Each of the greedy orders needs 11 bytes for these.
  std::vector<PlanBuffer> buffers = {
      {.lower = 4, .upper = 6, .size = 2}, {.lower = 4, .upper = 7, .size = 1},
      {.lower = 1, .upper = 4, .size = 6}, {.lower = 6, .upper = 10, .size = 6},
      {.lower = 2, .upper = 5, .size = 4}, {.lower = 4, .upper = 9, .size = 2}};
  while (buffers.size() <= kMostToSearch) {
    const auto later = static_cast<std::int64_t>(100 + buffers.size());
    buffers.push_back({.lower = later, .upper = later + 1, .size = 1});
  }
  ASSERT_EQ(makespan(buffers, plan_greedily(buffers)), 11U);
  const Offsets plan = plan_low(buffers, steady_clock::now() + seconds(60));
  EXPECT_THAT(plan_violations(buffers, plan, 10), IsEmpty());
}

TEST(UnplacedBuffers, are_found_like_by_looking_through_all) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const std::size_t count : {1, 2, 3, 100, 777}) {
    const auto buffers = random_buffers(random, count, 1);
    UnplacedBuffers unplaced(buffers);
    std::vector<bool> gone(count);
    for (std::size_t step = 0; step < 4 * count; ++step) {
      const auto begin = static_cast<std::int64_t>(random() % 100);
      const auto end = begin + static_cast<std::int64_t>(random() % 60);
      std::uint32_t expected = 0;
      while (expected < count &&
             (gone[expected] || buffers[expected].lower < begin || buffers[expected].upper > end))
        ++expected;
      if (expected == count) expected = UnplacedBuffers::kNone;
      ASSERT_EQ(unplaced.first_within(begin, end), expected);
      if (expected == UnplacedBuffers::kNone) continue;
      gone[expected] = true;
      unplaced.remove(expected);
    }
  }
}

TEST(PlanViolations, see_an_overlap_a_misplacement_and_a_height) {
  const std::vector<PlanBuffer> buffers = {{.lower = 0, .upper = 5, .size = 10, .alignment = 4},
                                           {.lower = 4, .upper = 9, .size = 10, .alignment = 4}};
  EXPECT_THAT(plan_violations(buffers, {0, 12}, 22), IsEmpty());
  EXPECT_THAT(plan_violations(buffers, {0, 8}, 22), ::testing::ElementsAre(HasSubstr("overlap")));
  EXPECT_THAT(plan_violations(buffers, {0, 13}, 23), ::testing::ElementsAre(HasSubstr("aligned")));
  EXPECT_THAT(plan_violations(buffers, {0, 12}, 21), ::testing::ElementsAre(HasSubstr("capacity")));
  EXPECT_THAT(plan_violations(buffers, {0}, 22), Not(IsEmpty()));
}

}  // namespace
}  // namespace headroom::planning_test
