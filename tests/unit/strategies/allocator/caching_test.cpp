// caching's decisions compared with sequences worked out by hand from PyTorch's rules, on meta.
#include <gmock/gmock.h>

#include "harness/base/error.h"
#include "tests/unit/strategies/allocator/decision_log.h"

namespace headroom::caching_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Caching = DecisionLog;

TEST_F(Caching, rounds_requests_up_to_512_bytes) {
  make("caching");
  EXPECT_EQ(take(1).size, 512u);
  EXPECT_EQ(take(512).size, 512u);
  EXPECT_EQ(take(513).size, 1024u);
}

TEST_F(Caching, cuts_small_requests_from_segments_of_two_mebibytes) {
  make("caching");
  take(100);
  take(kMiB);
  take(kMiB);  // 512 bytes short: a second segment
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 2MiB", "512B at 1+0", "1MiB at 1+512B",
                                       "segment 2: 2MiB", "1MiB at 2+0"));
}

TEST_F(Caching, cuts_middle_requests_from_segments_of_twenty_mebibytes) {
  make("caching");
  take(kMiB + 1);
  take(9 * kMiB);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 20MiB", "1049088B at 1+0", "9MiB at 1+1049088B"));
}

TEST_F(Caching, gives_a_large_request_a_segment_rounded_up_to_two_mebibytes) {
  make("caching");
  take(10 * kMiB);
  take(10 * kMiB + 1);  // 12 MiB, of which more than 1 MiB would be left: split
  take(11 * kMiB);      // 12 MiB, of which exactly 1 MiB is left: not split
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 10MiB", "10MiB at 1+0", "segment 2: 12MiB",
                                       "10486272B at 2+0", "segment 3: 12MiB", "12MiB at 3+0"));
}

TEST_F(Caching, keeps_the_pools_apart) {
  make("caching");
  give(take(5 * kMiB));  // 20 MiB are idle now, but not for small requests
  take(100);
  take(2 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 20MiB", "5MiB at 1+0", "free 1+0",
                                       "segment 2: 2MiB", "512B at 2+0", "2MiB at 1+0"));
}

TEST_F(Caching, splits_a_small_block_down_to_512_bytes_and_a_large_one_only_above_one_mebibyte) {
  make("caching");
  const Block small = take(kMiB);
  take(kMiB);  // so that nothing merges with the block before it
  give(small);
  EXPECT_EQ(take(kMiB - 512).size, kMiB - 512);
  const Block large = take(20 * kMiB);
  give(large);
  EXPECT_EQ(take(19 * kMiB).size, 20 * kMiB);
}

TEST_F(Caching, serves_the_best_fit_and_the_lowest_address_among_equals) {
  make("caching");
  const Block a = take(8 * kMiB);
  take(2 * kMiB);
  const Block b = take(4 * kMiB);
  take(2 * kMiB);
  const Block c = take(4 * kMiB);
  give(a);
  give(c);
  give(b);
  decisions();
  take(4 * kMiB);
  take(4 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("4MiB at 1+10MiB", "4MiB at 1+16MiB"));
}

TEST_F(Caching, merges_a_freed_block_with_both_neighbours) {
  make("caching");
  const Block a = take(2 * kMiB);
  const Block b = take(2 * kMiB);
  give(a);
  give(b);  // merges with the 16 MiB after it
  EXPECT_EQ(allocator().statistics().largest_free, 20 * kMiB);
  EXPECT_EQ(allocator().statistics().merges, 2u);
}

TEST_F(Caching, gives_whole_idle_segments_back_before_it_gives_up) {
  make("caching", "meta(capacity=40MiB)");
  give(take(20 * kMiB));
  const Block small = take(100);
  decisions();
  take(30 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("segment 1 back", "segment 3: 30MiB", "30MiB at 3+0"));
  EXPECT_THROW(take(20 * kMiB), OutOfMemory);
  EXPECT_THAT(decisions(), ElementsAre("refused 20MiB"));
  give(small);
  // Once the small segment is freed, 10 MiB are free, but a request of 9 MiB needs a segment of 20.
  EXPECT_THROW(take(9 * kMiB), OutOfMemory);
  EXPECT_THAT(decisions(), ElementsAre("free 2+0", "segment 2 back", "refused 9MiB"));
}

TEST_F(Caching, does_not_spend_a_block_of_max_split_size_on_a_smaller_request) {
  make("caching(max_split_size=24MiB)");
  give(take(24 * kMiB));
  decisions();
  take(22 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("segment 2: 22MiB", "22MiB at 2+0"));
}

TEST_F(Caching, serves_a_large_request_from_a_block_less_than_twenty_mebibytes_larger) {
  make("caching(max_split_size=24MiB)");
  give(take(50 * kMiB));
  decisions();
  give(take(31 * kMiB));
  give(take(30 * kMiB));  // 20 MiB too large
  EXPECT_THAT(decisions(), ElementsAre("50MiB at 1+0", "free 1+0", "segment 2: 30MiB",
                                       "30MiB at 2+0", "free 2+0"));
}

TEST_F(Caching, gives_oversize_blocks_back_first_and_only_as_many_as_it_needs) {
  make("caching(max_split_size=24MiB)", "meta(capacity=140MiB)");
  const Block a = take(30 * kMiB);
  const Block b = take(40 * kMiB);
  const Block c = take(50 * kMiB);
  give(take(20 * kMiB));  // not oversize
  give(a);
  give(b);
  give(c);
  decisions();
  // No cached block has 80 MiB, so the largest are freed until their sum is enough.
  take(80 * kMiB);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 3 back", "segment 2 back", "segment 5: 80MiB", "80MiB at 5+0"));
}

TEST_F(Caching, gives_the_one_oversize_block_back_that_is_large_enough) {
  make("caching(max_split_size=24MiB)", "meta(capacity=120MiB)");
  const Block a = take(30 * kMiB);
  const Block b = take(60 * kMiB);
  give(a);
  give(b);
  decisions();
  take(32 * kMiB);  // 60 MiB are over 20 too large, and 30 are left of the device
  EXPECT_THAT(decisions(), ElementsAre("segment 2 back", "segment 3: 32MiB", "32MiB at 3+0"));
}

TEST_F(Caching, rounds_up_to_parts_of_a_power_of_two_when_told) {
  make("caching(roundup_power2_divisions=4)");
  EXPECT_EQ(take(1200 * kKiB).size, 1280 * kKiB);  // 1024, 1280, 1536, 1792, 2048
  EXPECT_EQ(take(1281 * kKiB).size, 1536 * kKiB);
  EXPECT_EQ(take(1024 * kKiB).size, 1024 * kKiB);
  EXPECT_EQ(take(1500).size, 1536u);  // up to 512 · 4 bytes in steps of 512
}

TEST_F(Caching, collects_idle_segments_of_at_least_average_age_above_the_threshold) {
  make("caching(fraction=0.5,garbage_collection_threshold=0.5)", "meta(capacity=480MiB)");
  const Block a = take(30 * kMiB);
  const Block b = take(40 * kMiB);
  const Block c = take(50 * kMiB);
  give(a);
  take(34 * kMiB);  // 120 MiB are held, which is not above the threshold yet
  give(b);
  give(c);
  decisions();
  // 154 MiB are held, 34 above the threshold. a has been idle for 2 searches, b and c for 1; the
  // average is 4/3, so a is freed. That leaves 4 MiB too many, and then b and c are of average age.
  take(60 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("segment 1 back", "segment 2 back", "segment 3 back",
                                       "segment 5: 60MiB", "60MiB at 5+0"));
}

TEST_F(Caching, collects_nothing_below_the_threshold) {
  make("caching(fraction=0.5,garbage_collection_threshold=0.5)", "meta(capacity=400MiB)");
  give(take(30 * kMiB));
  give(take(40 * kMiB));
  decisions();
  take(50 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("segment 3: 50MiB", "50MiB at 3+0"));
}

TEST_F(Caching, holds_no_more_than_its_fraction) {
  make("caching(fraction=0.5)", "meta(capacity=100MiB)");
  take(30 * kMiB);
  EXPECT_THROW(take(22 * kMiB), OutOfMemory);
  EXPECT_EQ(take(20 * kMiB).size, 20 * kMiB);
}

TEST_F(Caching, cuts_requests_of_one_to_ten_mebibytes_from_the_named_segment) {
  make("caching(large_segment_size=32MiB)");
  take(2 * kMiB);
  take(kMiB);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 32MiB", "2MiB at 1+0", "segment 2: 2MiB", "1MiB at 2+0"));
}

TEST_F(Caching, refuses_a_free_of_another_size_than_was_asked_for) {
  make("caching");
  const Block block = take(1000);
  Block wrong = block;
  wrong.requested = 999;
  EXPECT_THROW(give(wrong), Error);
  EXPECT_EQ(allocator().statistics().requested, 1000u);
  give(block);
  EXPECT_EQ(allocator().statistics().requested, 0u);
}

TEST_F(Caching, empties_its_cache_when_asked) {
  make("caching");
  const Block kept = take(100);
  give(take(5 * kMiB));
  decisions();
  allocator().trim();
  EXPECT_THAT(decisions(), ElementsAre("segment 2 back"));
  give(kept);
  allocator().trim();
  EXPECT_EQ(memory().reserved(), 0u);
}

// 5 steps of 100 MiB and 4 · 10 MiB: no memory is allocated after the first step.
TEST_F(Caching, takes_nothing_from_the_device_in_a_repeated_step) {
  make("caching");
  const auto step = [&] {
    std::vector<Block> blocks = {take(100 * kMiB)};
    for (int i = 0; i < 4; ++i) blocks.push_back(take(10 * kMiB));
    for (const Block& block : blocks) give(block);
  };
  step();
  const std::uint64_t taken = memory().counters().segment_allocations;
  for (int i = 0; i < 4; ++i) step();
  EXPECT_EQ(memory().counters().segment_allocations, taken);
}

// Applies every rule once, in the order in which a program would meet them.
TEST_F(Caching, decides_a_sequence_as_the_documented_rules_have_it) {
  make("caching", "meta(capacity=64MiB)");
  const Block a = take(1);              // small, from 2 MiB; the rest stays in the pool
  const Block b = take(kMiB - 512);     // small, after a
  const Block c = take(3 * kMiB);       // large, from 20 MiB
  const Block d = take(16 * kMiB);      // 17 are left and only 1 would remain: given whole
  const Block e = take(10 * kMiB + 1);  // its own segment of 12 MiB; 2 MiB are split off
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 2MiB", "512B at 1+0", "1048064B at 1+512B",
                                       "segment 2: 20MiB", "3MiB at 2+0", "17MiB at 2+3MiB",
                                       "segment 3: 12MiB", "10486272B at 3+0"));
  give(d);
  take(5 * kMiB);  // the best fit of 17 MiB is split
  give(c);
  give(a);
  take(2 * kMiB);  // from the 3 MiB that c left; 1 MiB would remain, so it is not split
  take(2);         // takes a's place
  EXPECT_THAT(decisions(), ElementsAre("free 2+3MiB", "5MiB at 2+3MiB", "free 2+0", "free 1+0",
                                       "3MiB at 2+0", "512B at 1+0"));
  give(e);
  give(b);
  // 30 of 64 MiB are left, so a segment of 32 is refused until the idle one of 12 is freed.
  take(32 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("free 3+0", "free 1+512B", "segment 3 back",
                                       "segment 4: 32MiB", "32MiB at 4+0"));
  EXPECT_THROW(take(13 * kMiB), OutOfMemory);  // 12 are idle in segment 2 and 10 on the device
  EXPECT_THAT(decisions(), ElementsAre("refused 13MiB"));
}

TEST_F(Caching, names_what_is_wrong_with_its_parameters) {
  EXPECT_THAT([&] { make("caching(max_split_size=18MiB)"); },
              ThrowsMessage<InputError>(HasSubstr("at least large_segment_size")));
  EXPECT_THAT([&] { make("caching(large_segment_size=10MiB)"); },
              ThrowsMessage<InputError>(HasSubstr("above 10MiB")));
  EXPECT_THAT([&] { make("caching(roundup_power2_divisions=3)"); },
              ThrowsMessage<InputError>(HasSubstr("power of two")));
  EXPECT_THAT([&] { make("caching(garbage_collection_threshold=0.8)"); },
              ThrowsMessage<InputError>(HasSubstr("add fraction=0.99")));
  EXPECT_THAT([&] { make("caching(fraction=0.9,garbage_collection_threshold=1)"); },
              ThrowsMessage<InputError>(HasSubstr("between 0 and 1")));
  EXPECT_THAT([&] { make("caching(max_split_siz=32MiB)"); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'max_split_size'")));
  EXPECT_THAT([&] { make("caching(fraction=1.1)"); },
              ThrowsMessage<InputError>(HasSubstr("at most 1")));
}

}  // namespace
}  // namespace headroom::caching_test
