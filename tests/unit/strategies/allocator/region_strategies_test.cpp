// Strategies that grow by regions: decisions compared with sequences worked out by hand, on meta.
#include <gmock/gmock.h>

#include "harness/base/error.h"
#include "tests/unit/strategies/allocator/decision_log.h"

namespace headroom::region_strategies_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

using Pool = DecisionLog;

TEST_F(Pool, takes_half_of_the_device_and_then_as_much_again) {
  make("pool", "meta(capacity=64MiB)");
  take(20 * kMiB);
  take(20 * kMiB);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 32MiB", "20MiB at 1+0", "segment 2: 32MiB", "20MiB at 2+0"));
}

TEST_F(Pool, takes_half_of_what_is_left_when_it_has_a_maximum) {
  make("pool(initial=8MiB,maximum=40MiB)", "meta(capacity=64MiB)");
  take(8 * kMiB);
  take(kMiB);  // half of 32 MiB
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 8MiB", "8MiB at 1+0", "segment 2: 16MiB", "1MiB at 2+0"));
}

TEST_F(Pool, splits_exactly_and_never_shrinks) {
  make("pool(initial=4MiB)");
  EXPECT_EQ(take(kMiB + 1).size, kMiB + 256);
  give(take(2 * kMiB));
  decisions();
  allocator().trim();
  EXPECT_THAT(decisions(), IsEmpty());
}

TEST_F(Pool, serves_nine_tenths_of_the_device_at_once) {
  make("pool", "meta(capacity=100MiB)");
  give(take(90 * kMiB));
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 90MiB", "90MiB at 1+0", "free 1+0"));
}

TEST_F(Pool, serves_two_large_buffers_and_serves_them_again) {
  make("pool", "meta(capacity=100MiB)");
  for (int round = 0; round < 2; ++round) {
    const Block a = take(40 * kMiB);
    const Block b = take(40 * kMiB);
    give(a);
    give(b);
  }
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 50MiB", "40MiB at 1+0", "segment 2: 50MiB",
                                       "40MiB at 2+0", "free 1+0", "free 2+0", "40MiB at 1+0",
                                       "40MiB at 2+0", "free 1+0", "free 2+0"));
}

TEST_F(Pool, wants_a_maximum_that_holds_what_it_begins_with) {
  EXPECT_THAT([&] { make("pool(initial=40MiB,maximum=20MiB)", "meta(capacity=100MiB)"); },
              ThrowsMessage<InputError>(HasSubstr("at most the maximum of 20.00 MiB")));
}

using Arena = DecisionLog;

TEST_F(Arena, cuts_blocks_from_superblocks_that_join_where_they_meet) {
  make("arena");
  const Block small = take(256);
  const Block large = take(kMiB);  // a superblock of its own, joined with the rest of the first
  const Block other = take(512);
  EXPECT_EQ(large.address - small.address, 256u);
  EXPECT_EQ(other.address - large.address, kMiB);
  EXPECT_EQ(memory().reserved(), 512 * kMiB);
}

TEST_F(Arena, returns_a_superblock_to_the_global_arena_when_it_is_free_again) {
  make("arena");
  const Block kept = take(256);
  give(take(512));
  allocator().trim();  // the rest of the superblock does not belong to the global arena
  EXPECT_EQ(memory().reserved(), 512 * kMiB);
  give(kept);
  allocator().trim();
  EXPECT_EQ(memory().reserved(), 0u);
}

TEST_F(Arena, serves_the_first_block_that_fits_not_the_best) {
  make("arena");
  const Block a = take(4 * kMiB);
  take(kMiB);
  const Block b = take(2 * kMiB);
  take(kMiB);
  give(a);
  give(b);
  EXPECT_EQ(take(2 * kMiB).address, a.address);
}

TEST_F(Arena, grows_once_to_all_but_the_reserve) {
  make("arena");
  take(500 * kMiB);
  take(100 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 512MiB", "500MiB at 1+0", "segment 2: 448MiB",
                                       "100MiB at 2+0"));
}

using Buddy = DecisionLog;

TEST_F(Buddy, halves_a_region_until_the_block_just_holds_the_request) {
  make("buddy(region=1MiB)");
  EXPECT_EQ(take(100 * kKiB).size, 128 * kKiB);
  EXPECT_EQ(take(1).size, 256u);
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 1MiB", "128KiB at 1+0", "256B at 1+128KiB"));
}

TEST_F(Buddy, merges_with_its_other_half_only) {
  make("buddy(region=1MiB)");
  const Block a = take(256 * kKiB);
  const Block b = take(256 * kKiB);
  const Block c = take(256 * kKiB);
  const Block d = take(256 * kKiB);
  give(b);
  give(c);  // neighbours, but halves of different blocks
  EXPECT_EQ(allocator().statistics().largest_free, 256 * kKiB);
  give(a);
  EXPECT_EQ(allocator().statistics().largest_free, 512 * kKiB);
  give(d);
  EXPECT_EQ(allocator().statistics().largest_free, kMiB);
}

TEST_F(Buddy, takes_a_smaller_region_where_the_device_has_less) {
  make("buddy(region=64MiB)", "meta(capacity=40MiB)");
  take(kMiB);
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 32MiB", "1MiB at 1+0"));
}

TEST_F(Buddy, wants_regions_that_are_powers_of_two) {
  EXPECT_THAT([&] { make("buddy(region=3MiB)"); },
              ThrowsMessage<InputError>(HasSubstr("power of two")));
}

using Tlsf = DecisionLog;

TEST_F(Tlsf, passes_over_a_block_in_the_list_of_the_request_itself) {
  make("tlsf(region=1MiB)");
  const Block fits = take(16 * kKiB + 256);  // the lists hold [16, 16.5), [16.5, 17) … KiB
  take(256);
  give(fits);
  const Block block = take(16 * kKiB + 256);
  EXPECT_GT(block.address, fits.address);
  // All blocks from the next list on are large enough.
  EXPECT_EQ(take(16 * kKiB).address, fits.address);
}

TEST_F(Tlsf, serves_the_block_freed_last_from_a_list) {
  make("tlsf(region=1MiB)");
  const Block a = take(4 * kKiB);
  take(256);
  const Block b = take(4 * kKiB);
  take(256);
  give(a);
  give(b);
  EXPECT_EQ(take(4 * kKiB).address, b.address);
  EXPECT_EQ(take(4 * kKiB).address, a.address);
}

using Async = DecisionLog;

TEST_F(Async, gives_idle_memory_back_when_the_device_is_synchronised) {
  make("async");
  const Block kept = take(kMiB);
  give(take(100 * kMiB));
  EXPECT_EQ(memory().reserved(), 128 * kMiB);
  allocator().synchronized();
  EXPECT_EQ(memory().reserved(), 32 * kMiB);
  give(kept);
  allocator().synchronized();
  EXPECT_EQ(memory().reserved(), 0u);
}

TEST_F(Async, keeps_idle_memory_up_to_its_release_threshold) {
  make("async(release_threshold=64MiB)");
  const Block a = take(32 * kMiB);
  const Block b = take(32 * kMiB);
  const Block c = take(32 * kMiB);
  for (const Block& block : {a, b, c}) give(block);
  allocator().synchronized();
  EXPECT_EQ(memory().reserved(), 64 * kMiB);
}

TEST_F(Async, moves_scattered_idle_memory_to_where_a_large_block_needs_it) {
  make("async(release_threshold=1TiB)");
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(take(64 * kMiB));
  for (int i = 0; i < 8; i += 2) give(blocks[i]);
  allocator().synchronized();
  take(256 * kMiB);
  EXPECT_EQ(memory().reserved(), 512 * kMiB);
}

TEST_F(Async, moves_nothing_that_the_device_may_still_use) {
  make("async(release_threshold=1TiB)");
  const Block freed = take(64 * kMiB);
  take(32 * kMiB);
  give(freed);
  take(96 * kMiB);
  EXPECT_EQ(memory().reserved(), 192 * kMiB);
}

}  // namespace
}  // namespace headroom::region_strategies_test
