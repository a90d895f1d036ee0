// The requests of a trace, separate from how they were served.
#include "harness/trace/requests.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/base/error.h"
#include "tests/unit/support/trace_builder.h"

namespace headroom::requests_test {
namespace {

TEST(Requests, number_blocks_in_order_of_allocation_and_leave_segments_out) {
  TraceBuilder build;
  build.segment(1, 0, kMiB).alloc(7, 0, 100).alloc(3, 256, 50).free(7).free(3).free_segment(1);
  const RequestList list = requests_of(build.trace());
  ASSERT_EQ(list.requests.size(), 4U);
  EXPECT_EQ(list.blocks, 2U);
  EXPECT_EQ(list.requests[2].kind, Request::Kind::free);
  EXPECT_EQ(list.requests[2].block, 0U);
  EXPECT_EQ(list.requests[3].block, 1U);
  EXPECT_EQ(list.peak_live_bytes, 150U);
}

TEST(Requests, ask_again_for_what_was_refused_and_give_it_back_at_once) {
  TraceBuilder build;
  build.segment(1, 0, kMiB).alloc(1, 0, 100);
  build.event({.kind = EventKind::oom, .requested = 2 * kMiB});
  const RequestList list = requests_of(build.trace());
  ASSERT_EQ(list.requests.size(), 3U);
  EXPECT_EQ(list.requests[1].bytes, 2 * kMiB);
  EXPECT_EQ(list.requests[2].kind, Request::Kind::free);
  EXPECT_EQ(list.requests[2].block, list.requests[1].block);
  EXPECT_EQ(list.peak_live_bytes, 2 * kMiB + 100);
}

TEST(Requests, refuse_more_live_bytes_than_can_be_counted) {
  TraceBuilder build;
  build.alloc(1, 0, 1000).alloc(2, 4096, std::numeric_limits<Bytes>::max());
  EXPECT_THROW(requests_of(build.trace()), InputError);
}

TEST(Requests, refuse_a_free_of_what_is_not_live) {
  TraceBuilder build;
  build.alloc(1, 0, 100).free(1).free(1);
  EXPECT_THROW(requests_of(build.trace()), InputError);
}

}  // namespace
}  // namespace headroom::requests_test
