// Explanations of requests that could not be served.
#include "harness/trace/oom_explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "harness/base/error.h"
#include "tests/unit/support/trace_builder.h"

namespace headroom::oom_explanation_test {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint32_t> pin_ids(const OomExplanation& why) {
  std::vector<std::uint32_t> ids;
  for (const PinningBlock& pin : why.pins) ids.push_back(pin.id);
  return ids;
}

OomExplanation explain(TraceBuilder& build, Bytes wanted) {
  build.event({.kind = EventKind::oom, .requested = wanted});
  return explain_oom(build.trace());
}

TEST(OomExplanation, names_the_smallest_blocks_whose_going_would_make_room) {
  TraceBuilder build;  // [1: 400][hole 100][2: 50][hole 150][3: 300]
  build.segment(1, 0, 1000).alloc(1, 0, 400).alloc(2, 500, 50).alloc(3, 700, 300);
  const OomExplanation why = explain(build, 250);
  EXPECT_THAT(pin_ids(why), ElementsAre(2));
  EXPECT_EQ(why.pinned_bytes, 50U);
  EXPECT_EQ(why.free_bytes, 250U);
  EXPECT_EQ(why.largest_hole_bytes, 150U);
  EXPECT_EQ(why.live_bytes, 750U);
}

TEST(OomExplanation, never_joins_two_segments) {
  TraceBuilder build;
  build.segment(1, 0, 1000).segment(2, 1000, 1000).alloc(1, 0, 900).alloc(2, 1100, 900);
  EXPECT_THAT(pin_ids(explain(build, 200)), ::testing::SizeIs(1));
}

TEST(OomExplanation, joins_mapped_pages_of_one_reservation) {
  TraceBuilder build;  // mapped [0, 3000), and [3000, 4000) in another reservation
  build.map(1, 1000, 1000).map(1, 0, 1000).map(1, 2000, 2000).map(2, 4000, 1000);
  build.unmap(1, 3000, 1000).map(2, 3000, 1000).alloc(1, 800, 400).alloc(2, 2400, 100);
  const OomExplanation why = explain(build, 2300);
  EXPECT_THAT(pin_ids(why), ElementsAre(1));
  EXPECT_EQ(why.largest_hole_bytes, 2000U);
  EXPECT_EQ(why.reserved_bytes, 5000U);
}

TEST(OomExplanation, names_nobody_where_no_segment_is_large_enough) {
  TraceBuilder build;
  build.segment(1, 0, 1000).alloc(1, 0, 900);
  EXPECT_THAT(pin_ids(explain(build, 1001)), ::testing::IsEmpty());
}

TEST(OomExplanation, is_asked_only_of_a_trace_that_ends_out_of_memory) {
  TraceBuilder build;
  build.segment(1, 0, 1000);
  EXPECT_THROW(explain_oom(build.trace()), Error);
}

// Compares with a search of every place, byte by byte.
TEST(OomExplanation, finds_the_cheapest_place_of_all) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    constexpr Bytes kSegment = 120;
    TraceBuilder build;
    build.segment(1, 0, kSegment);
    std::vector<std::pair<Bytes, Bytes>> blocks;  // start, end
    Bytes at = random() % 10;
    for (std::uint32_t id = 1; at < kSegment; ++id) {
      const Bytes size = std::min<Bytes>(1 + random() % 20, kSegment - at);
      build.alloc(id, at, size);
      blocks.emplace_back(at, at + size);
      at += size + (random() % 3 == 0 ? random() % 15 : 0);
    }
    const Bytes wanted = 1 + random() % kSegment;
    Bytes cheapest = kSegment;
    for (Bytes start = 0; start + wanted <= kSegment; ++start) {
      Bytes cost = 0;
      for (const auto& [from, to] : blocks)
        if (from < start + wanted && to > start) cost += to - from;
      cheapest = std::min(cheapest, cost);
    }
    EXPECT_EQ(explain(build, wanted).pinned_bytes, cheapest) << "wanted " << wanted;
  }
}

}  // namespace
}  // namespace headroom::oom_explanation_test
