// Recorded requests replayed with another strategy on a virtual device.
#include "harness/whatif/replay.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/whatif/viable_capacity.h"
#include "tests/unit/support/trace_builder.h"

namespace headroom::replay_test {
namespace {

// Takes four quarters, frees two of them, then requests half of the whole.
RequestList checkerboard() {
  TraceBuilder build;
  for (std::uint32_t id = 1; id <= 4; ++id) build.alloc(id, 0, 8 * kMiB);
  build.free(1).free(3).alloc(5, 0, 16 * kMiB);
  return requests_of(build.trace());
}

TEST(Replay, serves_what_fits_and_counts_it) {
  const ReplayOutcome outcome = replay(checkerboard(), Spec("malloc"), {.capacity = 32 * kMiB});
  EXPECT_FALSE(outcome.failure);
  EXPECT_EQ(outcome.replayed, 7U);
  EXPECT_EQ(outcome.device_allocations, 5U);
  EXPECT_EQ(outcome.ledger.reserved.overall_peak, 32 * kMiB);
}

TEST(Replay, stops_at_the_first_request_without_room_and_says_which) {
  const ReplayOutcome outcome = replay(checkerboard(), Spec("bfc"), {.capacity = 32 * kMiB});
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->request, 6U);
  EXPECT_EQ(outcome.replayed, 6U);
  EXPECT_EQ(outcome.failure->explanation.pinned_bytes, 8 * kMiB);
}

TEST(Replay, tells_the_strategy_where_a_step_ends) {
  TraceBuilder build;
  for (std::uint32_t step = 1; step <= 3; ++step)
    build.step(static_cast<std::int32_t>(step)).alloc(step, 0, 8 * kMiB).free(step);
  const ReplayOutcome outcome =
      replay(requests_of(build.trace()), Spec("async"), {.capacity = kGiB});
  EXPECT_EQ(outcome.device_allocations, 3U);  // async gives all back after each step
}

ViableCapacity viable(const Spec& allocator) {
  const RequestList list = checkerboard();
  return find_viable_capacity(list.peak_live_bytes, 2 * kMiB, 17, [&](Bytes capacity) {
    return serves(list, allocator, {.capacity = capacity});
  });
}

TEST(ViableCapacity, is_the_smallest_from_which_on_every_one_serves) {
  const ViableCapacity in_a_row = viable(Spec("bfc"));
  EXPECT_EQ(in_a_row.smallest, 48 * kMiB);  // the fourth quarter parts what is free
  EXPECT_EQ(in_a_row.first, 32 * kMiB);
  EXPECT_EQ(in_a_row.last, 64 * kMiB);
  EXPECT_EQ(viable(Spec("malloc")).smallest, 32 * kMiB);
}

TEST(ViableCapacity, is_sought_between_the_points_of_the_grid) {
  const auto from = [](Bytes least) {
    return [least](Bytes capacity) { return capacity >= least; };
  };
  const Bytes lowest = 1000 * kMiB;
  const ViableCapacity found = find_viable_capacity(lowest, 2 * kMiB, 5, from(1338 * kMiB));
  EXPECT_EQ(found.smallest, 1338 * kMiB);
  EXPECT_EQ(found.resolution, 2 * kMiB);
  const ViableCapacity fine = find_viable_capacity(lowest, 1, 5, from(1338 * kMiB));
  EXPECT_GE(*fine.smallest, 1338 * kMiB);
  EXPECT_LT(*fine.smallest - fine.resolution, 1338 * kMiB);
  EXPECT_LE(fine.resolution, lowest / 1000);
  EXPECT_EQ(find_viable_capacity(lowest, 1, 5, from(lowest)).resolution, 0U);
}

TEST(ViableCapacity, is_none_where_no_capacity_of_the_grid_serves) {
  EXPECT_FALSE(viable(Spec("bfc", {{"limit", "16MiB"}})).smallest);
}

TEST(ViableCapacity, has_as_holes_those_that_fail_above_one_that_serves) {
  const auto but = [](Bytes failing) {
    return [failing](Bytes capacity) { return capacity != failing; };
  };
  const ViableCapacity found = find_viable_capacity(8 * kMiB, kMiB, 9, but(12 * kMiB));
  EXPECT_EQ(found.smallest, 13 * kMiB);
  EXPECT_EQ(found.holes, std::vector<Bytes>{12 * kMiB});
  EXPECT_EQ(find_viable_capacity(8 * kMiB, kMiB, 9, but(8 * kMiB)).holes, std::vector<Bytes>{});
}

}  // namespace
}  // namespace headroom::replay_test
