// Strategies under several streams, each decision worked out by hand from the rules that its source
// cites. A stream finishes its work when the test says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "tests/unit/strategies/allocator/decision_log.h"

namespace headroom::streams_test {
namespace {

using ::testing::ElementsAre;

class Streams : public DecisionLog {
 protected:
  Bytes pending() { return allocator().statistics().pending; }
};

TEST_F(Streams, have_segments_of_their_own_under_caching) {
  make("caching");
  give(take(100, 0));
  give(take(100, 1));
  take(100, 0);
  take(100, 1);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 2MiB", "512B at 1+0", "free 1+0", "segment 2: 2MiB",
                          "512B at 2+0", "free 2+0", "512B at 1+0", "512B at 2+0"));
}

TEST_F(Streams, that_use_a_freed_block_keep_it_from_its_own_until_they_reach_the_free) {
  make("caching");
  const Block a = take(20 * kMiB);
  allocator().record_stream(a, 1);
  give(a);
  EXPECT_EQ(allocator().statistics().allocated, 0U);
  EXPECT_EQ(pending(), 20 * kMiB);
  take(20 * kMiB);
  allocator().stream_synchronized(1);
  EXPECT_EQ(pending(), 20 * kMiB);  // checked only at the next request
  take(20 * kMiB);
  EXPECT_EQ(pending(), 0U);
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 20MiB", "20MiB at 1+0", "free 1+0",
                                       "segment 2: 20MiB", "20MiB at 2+0", "20MiB at 1+0"));
}

TEST_F(Streams, must_reach_a_free_that_comes_after_what_they_have_finished) {
  make("caching");
  const Block a = take(20 * kMiB);
  allocator().record_stream(a, 1);
  // Before the free: later work on stream 1 may still use the block.
  allocator().stream_synchronized(1);
  give(a);
  take(1);
  EXPECT_EQ(pending(), 20 * kMiB);
}

TEST_F(Streams, are_all_waited_for_where_several_use_a_block) {
  make("caching");
  const Block a = take(20 * kMiB);
  for (const StreamId stream : {1, 2, 1}) allocator().record_stream(a, stream);
  give(a);
  allocator().stream_synchronized(1);
  take(1);
  EXPECT_EQ(pending(), 20 * kMiB);
  allocator().stream_synchronized(2);
  take(1);
  EXPECT_EQ(pending(), 0U);
}

TEST_F(Streams, need_not_wait_for_themselves) {
  make("caching");
  const Block a = take(20 * kMiB, 3);
  allocator().record_stream(a, 3);
  give(a);
  EXPECT_EQ(pending(), 0U);
  EXPECT_EQ(take(20 * kMiB, 3).address, a.address);
}

TEST_F(Streams, keep_a_block_from_merging_while_they_use_it) {
  make("caching");
  const Block a = take(8 * kMiB);
  const Block b = take(12 * kMiB);
  allocator().record_stream(a, 1);
  give(a);
  give(b);
  EXPECT_EQ(allocator().statistics().largest_free, 12 * kMiB);
  allocator().synchronized();
  take(1);
  EXPECT_EQ(allocator().statistics().largest_free, 20 * kMiB);
}

TEST_F(Streams, are_waited_for_before_a_request_is_refused) {
  make("caching", "meta(capacity=40MiB)");
  const Block a = take(20 * kMiB);
  allocator().record_stream(a, 1);
  give(a);
  take(30 * kMiB, 1);
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 20MiB", "20MiB at 1+0", "free 1+0",
                                       "segment 1 back", "segment 2: 30MiB", "30MiB at 2+0"));
}

TEST_F(Streams, give_back_oversize_blocks_of_their_own_only) {
  make("caching(max_split_size=24MiB)", "meta(capacity=100MiB)");
  const Block a = take(30 * kMiB, 0);
  const Block b = take(40 * kMiB, 1);
  give(a);
  give(b);
  decisions();
  // 30 MiB are left. The idle segment of stream 0 is too small, and that of stream 1 belongs to
  // another stream, so all idle segments are freed.
  take(60 * kMiB, 0);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1 back", "segment 2 back", "segment 3: 60MiB", "60MiB at 3+0"));
}

TEST_F(Streams, have_address_ranges_of_their_own_under_expandable) {
  make("expandable");
  give(take(100, 0));
  const Block b = take(100, 1);
  allocator().record_stream(b, 0);
  give(b);
  take(100, 1);
  allocator().synchronized();
  take(100, 1);
  EXPECT_THAT(decisions(), ElementsAre("map 1+0: 2MiB", "512B at 1+0", "free 1+0", "map 2+0: 2MiB",
                                       "512B at 2+0", "free 2+0", "512B at 2+512B", "512B at 2+0"));
}

TEST_F(Streams, move_no_idle_pages_of_others_under_stitching) {
  make("stitching", "meta(capacity=64MiB)");
  give(take(20 * kMiB, 0));
  decisions();
  take(22 * kMiB, 1);
  EXPECT_THAT(decisions(), ElementsAre("map 2+0: 22MiB", "22MiB at 2+0"));
}

TEST_F(Streams, have_arenas_whose_superblocks_pass_to_others_when_they_are_free) {
  make("arena", "meta(capacity=4MiB)");
  const Block a = take(kKiB, 0);  // from a superblock of 256 KiB
  take(kKiB, 1);                  // from the next superblock
  const Block b = take(kKiB, 0);  // after a
  give(b);
  take(200 * kKiB, 1);  // from its own superblock, because b's place belongs to stream 0
  give(a);              // makes the first superblock whole
  take(100 * kKiB, 1);  // its own superblock has 55 KiB left, so it takes the first one
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 2MiB", "1KiB at 1+0", "1KiB at 1+256KiB", "1KiB at 1+1KiB",
                          "free 1+1KiB", "200KiB at 1+257KiB", "free 1+0", "100KiB at 1+0"));
}

TEST_F(Streams, free_into_the_arena_a_block_came_from) {
  make("arena", "meta(capacity=4MiB)");
  take(kKiB, 0);
  Block b = take(kKiB, 0);
  b.stream = 1;  // whichever stream frees it
  give(b);
  decisions();
  take(kKiB, 1);
  take(kKiB, 0);
  EXPECT_THAT(decisions(), ElementsAre("1KiB at 1+256KiB", "1KiB at 1+1KiB"));
}

TEST_F(Streams, give_everything_free_to_the_global_arena_before_a_request_is_refused) {
  make("arena", "meta(capacity=1MiB)");  // 512 KiB at once, 448 more at most
  take(kKiB, 0);                         // leaves 255 KiB to stream 0, and 256 after them
  take(450 * kKiB, 1);
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 512KiB", "1KiB at 1+0", "450KiB at 1+1KiB"));
}

}  // namespace
}  // namespace headroom::streams_test
