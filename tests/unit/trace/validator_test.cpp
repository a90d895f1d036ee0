#include "harness/trace/validator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/support/trace_builder.h"

namespace headroom::validator_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Validator, finds_nothing_wrong_with_a_sound_trace) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x4000).alloc(1, 0x10000, 1000, 1024).alloc(2, 0x10400, 256);
  builder.free(1).alloc(3, 0x10000, 256).free(2).free(3).free_segment(1);
  EXPECT_THAT(violations(builder.trace()), IsEmpty());
}

TEST(Validator, finds_blocks_that_share_a_byte) {
  for (const Address second : {0x10200, 0x10000, 0x10300}) {
    TraceBuilder builder;
    builder.segment(1, 0x10000, 0x4000).alloc(1, 0x10200, 512).alloc(2, second, 1024);
    EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("overlaps live block 1")))
        << second;
  }
}

TEST(Validator, finds_a_block_that_reaches_one_byte_into_the_next) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x4000).alloc(1, 0x10200, 512).alloc(2, 0x10000, 513);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("overlaps live block 1")));
}

TEST(Validator, accepts_blocks_that_touch) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x4000).alloc(1, 0x10200, 512).alloc(2, 0x10400, 512);
  builder.alloc(3, 0x10000, 512);
  EXPECT_THAT(violations(builder.trace()), IsEmpty());
}

TEST(Validator, finds_a_block_outside_every_segment) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000).alloc(1, 0x20000, 256);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("not inside one live segment")));
}

TEST(Validator, finds_a_block_across_the_border_of_two_segments) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000).segment(2, 0x11000, 0x1000).alloc(1, 0x10f00, 512);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("not inside one live segment")));
}

TEST(Validator, finds_a_block_in_the_unusable_end_of_a_granule) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000, 0x2000).alloc(1, 0x11000, 256);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("not inside one live segment")));
}

TEST(Validator, finds_a_block_in_a_segment_that_was_given_back) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000).free_segment(1).alloc(1, 0x10000, 256);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("not inside one live segment")));
}

TEST(Validator, finds_a_segment_given_back_under_a_live_block) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000).alloc(7, 0x10100, 256).free_segment(1);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("under live block 7")));
}

TEST(Validator, finds_a_misaligned_block) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000).alloc(1, 0x10080, 256);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("not aligned to 256")));
}

TEST(Validator, finds_a_block_freed_twice) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000).alloc(5, 0x10000, 256).free(5).free(5);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("block 5 is freed but not live")));
}

TEST(Validator, finds_a_free_that_does_not_match_its_allocation) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000).alloc(5, 0x10000, 256).free(5);
  builder.trace().events.back().size = 512;
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("but was served as")));
}

TEST(Validator, finds_a_number_used_by_two_live_blocks) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000).alloc(5, 0x10000, 256).alloc(5, 0x10100, 256);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("while it is live")));
}

TEST(Validator, finds_a_block_smaller_than_its_request) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000).alloc(1, 0x10000, 300, 256);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("256 bytes of 300 requested")));
}

TEST(Validator, finds_segments_beyond_the_capacity_as_the_device_charges_them) {
  TraceBuilder builder;
  builder.trace().header.capacity_bytes = 0x3000;
  builder.segment(1, 0x10000, 0x1000).segment(2, 0x20000, 0x1800, 0x2000);
  EXPECT_THAT(violations(builder.trace()), IsEmpty());
  builder.segment(3, 0x30000, 1, 0x1000);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("of a capacity of 12288")));
}

TEST(Validator, finds_overlapping_segments) {
  TraceBuilder builder;
  builder.segment(1, 0x10000, 0x1000).segment(2, 0x10800, 0x1000);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("overlaps live segment 1")));
}

TEST(Validator, takes_pages_of_one_reservation_that_meet_as_one_segment) {
  TraceBuilder builder;
  builder.map(1, 0x12000, 0x1000).map(1, 0x10000, 0x1000).map(1, 0x11000, 0x1000);
  builder.alloc(1, 0x10800, 0x2000).free(1).unmap(1, 0x10000, 0x3000);
  EXPECT_THAT(violations(builder.trace()), IsEmpty());
}

TEST(Validator, finds_a_block_across_pages_of_two_reservations) {
  TraceBuilder builder;
  builder.map(1, 0x10000, 0x1000).map(2, 0x11000, 0x1000).alloc(1, 0x10800, 0x1000);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("not inside one live segment")));
}

TEST(Validator, finds_pages_mapped_twice) {
  TraceBuilder builder;
  builder.map(1, 0x10000, 0x2000).map(1, 0x11000, 0x1000);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("overlaps segment 1")));
}

TEST(Validator, finds_pages_unmapped_that_were_not_mapped) {
  TraceBuilder builder;
  builder.map(1, 0x10000, 0x2000).unmap(1, 0x10000, 0x1000).unmap(1, 0x10000, 0x2000);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("has not mapped")));
}

TEST(Validator, finds_pages_unmapped_under_a_live_block) {
  TraceBuilder builder;
  builder.map(1, 0x10000, 0x3000).alloc(7, 0x11f00, 256).unmap(1, 0x11000, 0x1000);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("under live block 7")));
}

TEST(Validator, finds_a_block_in_pages_that_were_unmapped) {
  TraceBuilder builder;
  builder.map(1, 0x10000, 0x3000).unmap(1, 0x11000, 0x1000).alloc(1, 0x10f00, 512);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("not inside one live segment")));
}

TEST(Validator, counts_mapped_pages_against_the_capacity) {
  TraceBuilder builder;
  builder.trace().header.capacity_bytes = 0x3000;
  builder.map(1, 0x10000, 0x3000).unmap(1, 0x10000, 0x1000).map(1, 0x14000, 0x1000);
  EXPECT_THAT(violations(builder.trace()), IsEmpty());
  builder.map(1, 0x15000, 0x1000);
  EXPECT_THAT(violations(builder.trace()), ElementsAre(HasSubstr("of a capacity of 12288")));
}

TEST(Validator, says_no_more_than_it_was_asked_for) {
  TraceBuilder builder;
  for (std::uint32_t id = 1; id <= 50; ++id) builder.alloc(id, id * 4096, 256);
  EXPECT_EQ(violations(builder.trace(), 3).size(), 3u);
}

}  // namespace
}  // namespace headroom::validator_test
