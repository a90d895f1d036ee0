// expandable's decisions compared with sequences worked out by hand from PyTorch's rules, on meta.
#include <gmock/gmock.h>

#include "harness/base/error.h"
#include "tests/unit/strategies/allocator/decision_log.h"

namespace headroom::expandable_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Expandable = DecisionLog;

TEST_F(Expandable, maps_twenty_mebibytes_at_a_time_behind_the_last_block) {
  make("expandable");
  take(15 * kMiB);
  take(15 * kMiB);  // 5 MiB are there, 10 are missing
  EXPECT_THAT(decisions(), ElementsAre("map 1+0: 20MiB", "15MiB at 1+0", "map 1+20MiB: 20MiB",
                                       "15MiB at 1+15MiB"));
}

TEST_F(Expandable, maps_two_mebibytes_at_a_time_for_small_requests) {
  make("expandable");
  take(kMiB);
  take(kMiB);
  take(1);
  EXPECT_THAT(decisions(), ElementsAre("map 1+0: 2MiB", "1MiB at 1+0", "1MiB at 1+1MiB",
                                       "map 1+2MiB: 2MiB", "512B at 1+2MiB"));
}

TEST_F(Expandable, splits_off_whatever_has_512_bytes) {
  make("expandable");
  const Block hole = take(4 * kMiB);
  take(2 * kMiB);
  give(hole);
  EXPECT_EQ(take(4 * kMiB - 512).size, 4 * kMiB - 512);
}

TEST_F(Expandable, maps_the_named_large_segment_size_at_a_time) {
  make("expandable(large_segment_size=32MiB)");
  take(2 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("map 1+0: 32MiB", "2MiB at 1+0"));
}

// PyTorch compares the size of a separate segment, 20 MiB, although only 2 MiB would be mapped.
TEST_F(Expandable, refuses_what_would_pass_its_fraction_as_a_segment_of_its_own) {
  make("expandable(fraction=0.5,page=2MiB)", "meta(capacity=100MiB)");
  take(32 * kMiB);
  EXPECT_THROW(take(2 * kMiB), OutOfMemory);
  EXPECT_EQ(take(18 * kMiB).size, 18 * kMiB);
}

TEST_F(Expandable, does_not_spend_a_block_of_max_split_size_on_a_smaller_request) {
  make("expandable(max_split_size=24MiB)");
  const Block large = take(40 * kMiB);
  take(2 * kMiB);
  give(large);
  decisions();
  take(4 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("4MiB at 1+42MiB"));
}

// Batches of N, N − 1 and N + 1 leave small holes in segments of fixed size.
TEST_F(Expandable, grows_the_same_range_when_a_request_is_a_little_larger_than_before) {
  make("expandable(page=2MiB)");
  for (const Bytes mebibytes : {100u, 98u, 102u}) give(take(mebibytes * kMiB));
  EXPECT_EQ(memory().reserved(), 102 * kMiB);
  make("caching");
  for (const Bytes mebibytes : {100u, 98u, 102u}) give(take(mebibytes * kMiB));
  EXPECT_EQ(memory().reserved(), 202 * kMiB);
}

TEST_F(Expandable, prefers_a_hole_to_the_chunk_that_could_still_grow) {
  make("expandable");
  take(10 * kMiB);
  const Block hole = take(6 * kMiB);
  take(kMiB + 512);
  give(hole);  // 6 MiB; at the end 3 MiB − 512, behind which pages could be mapped
  decisions();
  take(2 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("2MiB at 1+10MiB"));
}

TEST_F(Expandable, unmaps_idle_pages_before_it_gives_up_and_maps_them_elsewhere) {
  make("expandable(page=2MiB)", "meta(capacity=40MiB)");
  const Block a = take(10 * kMiB);
  take(2 * kMiB);
  const Block c = take(10 * kMiB);
  take(2 * kMiB);
  give(a);
  give(c);
  decisions();
  take(30 * kMiB);  // 16 are left of the device and 20 idle in two holes; 45 MiB of addresses are
                    // too few for it, so new ones are taken
  EXPECT_THAT(decisions(), ElementsAre("unmap 1+0: 10MiB", "unmap 1+12MiB: 10MiB", "map 2+0: 30MiB",
                                       "30MiB at 2+0"));
}

TEST_F(Expandable, moves_idle_pages_instead_of_taking_new_ones_when_stitching) {
  make("stitching");
  const Block a = take(10 * kMiB);
  take(2 * kMiB);
  const Block c = take(8 * kMiB);
  take(2 * kMiB);
  give(a);
  give(c);
  decisions();
  take(20 * kMiB);  // 10 + 8 from the holes, only 2 anew
  EXPECT_THAT(decisions(),
              ElementsAre("unmap 1+0: 10MiB", "map 1+22MiB: 10MiB", "unmap 1+12MiB: 8MiB",
                          "map 1+32MiB: 8MiB", "map 1+40MiB: 2MiB", "20MiB at 1+22MiB"));
  EXPECT_EQ(memory().reserved(), 24 * kMiB);
}

// Distinguishes virtual memory from physical regions, where 508 of 512 MiB are free.
TEST_F(Expandable, serves_508_of_512_mebibytes_whichever_block_stays) {
  for (const char* spec : {"expandable(page=2MiB)", "stitching"}) {
    for (const std::size_t stays : {0u, 63u, 127u}) {
      make(spec, "meta(capacity=512MiB)");
      std::vector<Block> blocks;
      for (int i = 0; i < 128; ++i) blocks.push_back(take(4 * kMiB));
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i != stays) give(blocks[i]);
      }
      EXPECT_EQ(take(508 * kMiB).size, 508 * kMiB) << spec << ", block " << stays;
      EXPECT_THROW(take(1), OutOfMemory);
    }
  }
}

TEST_F(Expandable, gives_everything_back_when_asked_but_pages_in_use) {
  make("expandable(page=2MiB)");
  const Block a = take(10 * kMiB);
  const Block b = take(kMiB + 512);
  const Block c = take(10 * kMiB);
  give(a);
  give(c);
  allocator().trim();
  EXPECT_EQ(memory().reserved(), 2 * kMiB);
  give(b);
  allocator().trim();
  EXPECT_EQ(memory().reserved(), 0u);
}

TEST_F(Expandable, names_what_is_wrong_with_its_page) {
  EXPECT_THAT([&] { make("expandable(page=3MiB)"); },
              ThrowsMessage<InputError>(HasSubstr("multiple of 2.00 MiB")));
}

}  // namespace
}  // namespace headroom::expandable_test
