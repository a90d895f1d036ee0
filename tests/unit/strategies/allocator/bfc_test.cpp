// Hand-worked decision sequences of bfc, on meta: the trace of segments and addresses is the
// result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "harness/base/error.h"
#include "harness/device/device.h"
#include "harness/machine/heap_witness.h"
#include "harness/memory/allocator.h"
#include "harness/trace/recorder.h"

namespace headroom::bfc_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::ThrowsMessage;

class Bfc : public ::testing::Test {
 protected:
  void make(const std::string& allocator, const std::string& device = "meta(capacity=1GiB)") {
    allocator_.reset();
    const Spec spec = Spec::parse(device);
    device_ = make_device(spec);
    device_->memory().record_into(&recorder_);
    allocator_ = make_allocator(Spec::parse(allocator), device_->memory());
  }

  Block take(Bytes bytes) { return allocator_->allocate(bytes, {}); }
  void give(const Block& block) { allocator_->deallocate(block); }

  // Usable bytes of every segment taken, in order.
  std::vector<Bytes> segments_taken() const {
    std::vector<Bytes> sizes;
    for (const TraceEvent& event : recorder_.trace().events) {
      if (event.kind == EventKind::segment_alloc) sizes.push_back(event.requested);
    }
    return sizes;
  }

  TraceRecorder recorder_{64};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Allocator> allocator_;
};

TEST_F(Bfc, rounds_requests_up_to_256_bytes) {
  make("bfc");
  EXPECT_EQ(take(4).size, 256u);
  EXPECT_EQ(take(256).size, 256u);
  EXPECT_EQ(take(257).size, 512u);
}

TEST_F(Bfc, takes_nothing_from_the_device_before_the_first_request) {
  make("bfc");
  EXPECT_EQ(device_->memory().reserved(), 0u);
  take(1);
  EXPECT_EQ(device_->memory().reserved(), kGiB);
}

TEST_F(Bfc, preallocates_the_named_share_of_the_device) {
  make("bfc(fraction=0.25)");
  take(1);
  EXPECT_THAT(segments_taken(), ElementsAre(256 * kMiB));
}

TEST_F(Bfc, leaves_the_named_reserve_to_the_device) {
  make("bfc(reserve=225MiB)");
  take(1);
  EXPECT_THAT(segments_taken(), ElementsAre(799 * kMiB));
}

TEST_F(Bfc, starts_with_two_mebibytes_and_doubles_each_region_with_growth) {
  make("bfc(growth=on)");
  for (int i = 0; i < 7; ++i) take(2 * kMiB);
  // Regions of 2 MiB, of 4 for two requests, and of 8 for four.
  EXPECT_THAT(segments_taken(), ElementsAre(2 * kMiB, 4 * kMiB, 8 * kMiB));
}

TEST_F(Bfc, doubles_the_region_until_the_request_fits_and_then_not_once_more) {
  make("bfc(growth=on)");
  take(100 * kMiB);  // 2 → 4 → … → 128
  take(100 * kMiB);  // the next region is again 128, and only the one after it is twice that
  take(100 * kMiB);
  EXPECT_THAT(segments_taken(), ElementsAre(128 * kMiB, 128 * kMiB, 256 * kMiB));
}

TEST_F(Bfc, never_passes_its_limit) {
  make("bfc(growth=on,limit=5MiB)");
  take(2 * kMiB);
  take(2 * kMiB);  // would allocate 4 MiB, but the limit leaves 3
  EXPECT_THAT(segments_taken(), ElementsAre(2 * kMiB, 3 * kMiB));
  EXPECT_THROW(take(2 * kMiB), OutOfMemory);
}

TEST_F(Bfc, backs_off_by_tenths_when_the_device_has_less_than_it_wants) {
  make("bfc", "meta(capacity=1000KiB)");
  const Segment other = device_->memory().allocate(300 * kKiB);
  take(kKiB);
  // 1000 · 0.9³ = 729 KiB do not fit into 700, 0.9⁴ do; each step rounds up to 256 bytes.
  const Bytes taken = segments_taken().back();
  EXPECT_EQ(taken % 256, 0u);
  EXPECT_NEAR(static_cast<double>(taken), 656.1 * 1024, 4 * 256);
  EXPECT_EQ(device_->memory().counters().failed_allocations, 4u);
  allocator_.reset();
  device_->memory().free(other);
}

TEST_F(Bfc, serves_the_smallest_chunk_that_fits) {
  make("bfc");
  const Block large = take(64 * kKiB);
  take(1);
  const Block small = take(16 * kKiB);
  take(1);
  give(large);
  give(small);
  EXPECT_EQ(take(10 * kKiB).address, small.address);
}

TEST_F(Bfc, serves_the_lowest_address_among_equal_sizes) {
  make("bfc");
  const Block low = take(4 * kKiB);
  take(1);
  const Block high = take(4 * kKiB);
  take(1);
  give(low);
  give(high);
  EXPECT_EQ(take(4 * kKiB).address, low.address);
  EXPECT_EQ(take(4 * kKiB).address, high.address);
}

TEST_F(Bfc, serves_the_youngest_region_among_equal_chunks_when_regions_descend) {
  for (const auto& [order, youngest] : {std::pair{"ascending", false}, {"descending", true}}) {
    make(std::string("bfc(growth=on,regions=") + order + ")");
    take(2 * kMiB);
    const Block older = take(4 * kMiB);
    const Block younger = take(4 * kMiB);  // lies in a region of 8 MiB
    take(4 * kMiB);
    give(older);
    give(younger);
    EXPECT_EQ(take(4 * kMiB).address, youngest ? younger.address : older.address) << order;
  }
}

TEST_F(Bfc, splits_a_chunk_of_twice_the_request_and_returns_the_low_part) {
  make("bfc");
  const Block hole = take(8 * kKiB);
  take(1);
  give(hole);
  const Block half = take(4 * kKiB);
  EXPECT_EQ(half.address, hole.address);
  EXPECT_EQ(half.size, 4 * kKiB);
}

TEST_F(Bfc, gives_a_chunk_below_twice_the_request_away_whole) {
  make("bfc");
  const Block hole = take(8 * kKiB);
  take(1);
  give(hole);
  EXPECT_EQ(take(4 * kKiB + 1).size, 8 * kKiB);
}

TEST_F(Bfc, splits_below_twice_the_request_when_128_mebibytes_would_be_wasted) {
  make("bfc");
  const Block hole = take(400 * kMiB);
  take(1);
  give(hole);
  const Block kept = take(400 * kMiB - 128 * kMiB + 256);  // 256 bytes short of the waste
  EXPECT_EQ(kept.size, 400 * kMiB);
  give(kept);
  EXPECT_EQ(take(400 * kMiB - 128 * kMiB).size, 272 * kMiB);
}

TEST_F(Bfc, takes_the_tolerated_waste_from_fragmentation_fraction) {
  make("bfc(fragmentation_fraction=0.0625)");  // 64 MiB of 1 GiB
  const Block hole = take(200 * kMiB);
  take(1);
  give(hole);
  EXPECT_EQ(take(136 * kMiB).size, 136 * kMiB);
}

TEST_F(Bfc, takes_exactly_the_rounded_bytes_for_all_sizes_below_1024) {
  make("bfc");
  for (Bytes bytes = 1; bytes < 1024; ++bytes) take(bytes);
  EXPECT_EQ(allocator_->statistics().allocated, 654'336u);
}

TEST_F(Bfc, comes_back_to_the_same_address_after_a_thousand_rounds) {
  make("bfc");
  const Block first = take(5 * kMiB);
  give(first);
  for (Bytes round = 0; round < 1024; ++round) {
    const Block a = take(4 * kKiB + round);
    const Block b = take(kMiB + 3 * round);
    const Block c = take(1 + round);
    const Block d = take(2 * kMiB);
    give(b);
    give(d);
    give(a);
    give(c);
  }
  EXPECT_EQ(take(5 * kMiB).address, first.address);
  EXPECT_EQ(allocator_->statistics().merges, allocator_->statistics().splits - 1);
}

TEST_F(Bfc, merges_a_freed_chunk_with_both_neighbours) {
  make("bfc");
  const Block a = take(kMiB);
  const Block b = take(kMiB);
  const Block c = take(kMiB);
  take(1);
  give(a);
  give(c);
  give(b);
  const Block whole = take(3 * kMiB);
  EXPECT_EQ(whole.address, a.address);
  EXPECT_EQ(whole.size, 3 * kMiB);
  EXPECT_EQ(allocator_->statistics().merges, 2u);
}

TEST_F(Bfc, never_merges_across_regions) {
  make("bfc(growth=on,limit=6MiB,garbage_collection=off)");
  const Block a = take(2 * kMiB);
  const Block b = take(4 * kMiB);
  give(a);
  give(b);
  EXPECT_THROW(take(6 * kMiB), OutOfMemory);
  EXPECT_EQ(allocator_->statistics().largest_free, 4 * kMiB);
}

TEST_F(Bfc, gives_idle_regions_back_before_it_gives_up) {
  make("bfc(growth=on,limit=6MiB)");
  const Block a = take(2 * kMiB);
  const Block b = take(4 * kMiB);
  give(a);
  give(b);
  EXPECT_EQ(take(6 * kMiB).size, 6 * kMiB);
  EXPECT_EQ(device_->memory().counters().segment_frees, 2u);
  EXPECT_EQ(allocator_->statistics().segments, 1u);
}

TEST_F(Bfc, keeps_idle_regions_when_giving_them_back_would_not_help) {
  make("bfc(growth=on,limit=6MiB)");
  const Block a = take(2 * kMiB);
  take(4 * kMiB);
  give(a);
  EXPECT_THROW(take(4 * kMiB), OutOfMemory);
  EXPECT_EQ(device_->memory().counters().segment_frees, 0u);
}

// Distinguishes physical regions from virtual memory: 508 of 512 MiB are free, but in regions that
// were taken one by one. XLA's own tests check both kinds of allocator this way.
TEST_F(Bfc, cannot_serve_508_of_512_mebibytes_that_are_free_in_separate_regions) {
  make("bfc(growth=on,garbage_collection=off)", "meta(capacity=512MiB)");
  std::vector<Block> blocks;
  for (int i = 0; i < 128; ++i) blocks.push_back(take(4 * kMiB));
  for (int i = 0; i < 127; ++i) give(blocks[i]);
  EXPECT_THROW(take(508 * kMiB), OutOfMemory);
  give(blocks.back());
}

// Chunk handles are reused; otherwise the table of chunks would grow with every round.
TEST_F(Bfc, asks_nothing_of_the_heap_once_it_has_seen_a_round) {
  if (!heap_witness_available()) GTEST_SKIP() << "a sanitizer brings its own malloc";
  make("bfc(growth=on)");
  const auto round = [&] {
    std::array<Block, 8> blocks;
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = take(kMiB >> i);
    for (const std::size_t i : {3u, 0u, 7u, 5u, 1u, 2u, 6u, 4u}) give(blocks[i]);
  };
  round();
  round();
  const std::uint64_t before = heap_counters().allocations;
  for (int i = 0; i < 1000; ++i) round();
  EXPECT_EQ(heap_counters().allocations, before);
}

TEST_F(Bfc, says_at_out_of_memory_what_was_free_and_how_large_the_largest_hole_is) {
  make("bfc(limit=8MiB)");
  const Block a = take(3 * kMiB);
  take(2 * kMiB);
  give(a);
  try {
    take(4 * kMiB);
    FAIL() << "4 MiB were served from holes of 3 MiB";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().requested_bytes, 4 * kMiB);
    EXPECT_EQ(error.report().capacity_bytes, kGiB);
    EXPECT_EQ(error.report().reserved_bytes, 8 * kMiB);
    EXPECT_EQ(error.report().allocated_bytes, 2 * kMiB);
    EXPECT_EQ(error.report().free_bytes, 6 * kMiB);
    EXPECT_EQ(error.report().largest_free_bytes, 3 * kMiB);
    EXPECT_EQ(error.report().allocator, "bfc(limit=8MiB)");
  }
}

TEST_F(Bfc, counts_as_growth_only_when_something_could_grow) {
  make("bfc(growth=on)");
  EXPECT_THAT(allocator_->why_not_engaged(), Optional(HasSubstr("never took memory")));
  take(1);
  EXPECT_EQ(allocator_->why_not_engaged(), std::nullopt);
  make("bfc(growth=on,limit=1MiB)");
  take(1);
  EXPECT_THAT(allocator_->why_not_engaged(), Optional(HasSubstr("whole limit")));
}

TEST_F(Bfc, counts_as_preallocation_only_with_exactly_one_region) {
  make("bfc");
  take(1);
  EXPECT_EQ(allocator_->why_not_engaged(), std::nullopt);
  // Another user of the device makes one region impossible, so the rest grows in a second one.
  make("bfc", "meta(capacity=10MiB)");
  const Segment other = device_->memory().allocate(2 * kMiB);
  take(6 * kMiB);
  device_->memory().free(other);
  take(2 * kMiB);
  EXPECT_THAT(allocator_->why_not_engaged(),
              Optional(HasSubstr("exactly one region, but holds 2")));
}

TEST_F(Bfc, counts_as_preallocation_only_with_the_whole_budget_from_the_start) {
  make("bfc", "meta(capacity=10MiB)");
  device_->memory().allocate(2 * kMiB);
  take(6 * kMiB);
  EXPECT_THAT(allocator_->why_not_engaged(), Optional(HasSubstr("whole budget of 10.00 MiB")));
}

TEST_F(Bfc, refuses_a_block_freed_twice) {
  make("bfc");
  const Block block = take(1);
  give(block);
  EXPECT_THROW(give(block), Error);
}

TEST_F(Bfc, names_what_is_wrong_with_its_parameters) {
  EXPECT_THAT([&] { make("bfc(fraction=1.5)"); },
              ThrowsMessage<InputError>(HasSubstr("at most 1")));
  EXPECT_THAT([&] { make("bfc(fraction=0)"); }, ThrowsMessage<InputError>(HasSubstr("above 0")));
  EXPECT_THAT([&] { make("bfc(limit=100)"); }, ThrowsMessage<InputError>(HasSubstr("256 B")));
  EXPECT_THAT([&] { make("bfc(fraction=0.5,reserve=1MiB)"); },
              ThrowsMessage<InputError>(HasSubstr("not both")));
  EXPECT_THAT([&] { make("bfc(regions=sideways)"); },
              ThrowsMessage<InputError>(HasSubstr("ascending or descending")));
  EXPECT_THAT([&] { make("bfc(grow=on)"); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'growth'")));
}

TEST(AllocatorNames, are_answered_with_the_nearest_when_unknown) {
  const Spec spec = Spec::parse("meta(capacity=1MiB)");
  const auto device = make_device(spec);
  EXPECT_THAT([&] { make_allocator(Spec::parse("bcf"), device->memory()); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'bfc'")));
}

}  // namespace
}  // namespace headroom::bfc_test
