#include "harness/trace/peak_use.h"

#include <gtest/gtest.h>

namespace headroom::peak_use_test {
namespace {

class UseAtPeak : public ::testing::Test {
 protected:
  void event(EventKind kind, std::uint32_t id, Bytes bytes, std::uint32_t op = kNoOp,
             Role role = Role::activation) {
    TraceEvent one;
    one.kind = kind;
    one.id = id;
    one.op = op;
    one.role = role;
    one.requested = one.size = bytes;
    trace_.events.push_back(one);
  }

  Trace trace_{.header = {}, .events = {}, .op_names = {"embed", "head"}};
};

TEST_F(UseAtPeak, counts_what_is_live_when_most_is) {
  event(EventKind::alloc, 1, 100, 0);
  event(EventKind::alloc, 2, 50, 1);
  event(EventKind::free, 1, 100, 0);
  event(EventKind::alloc, 3, 90, 1);
  event(EventKind::alloc, 4, 20);
  event(EventKind::free, 4, 20);
  const PeakUse use = use_at_peak(trace_);
  EXPECT_EQ(use.allocated, 160U);
  EXPECT_EQ(use.by_op, (std::map<std::string, Bytes>{{"head", 140}, {"", 20}}));
}

TEST_F(UseAtPeak, tells_no_roles_where_there_is_only_one) {
  event(EventKind::alloc, 1, 100, 0);
  event(EventKind::alloc, 2, 50, 1);
  EXPECT_TRUE(use_at_peak(trace_).by_role.empty());
  event(EventKind::alloc, 3, 7, 1, Role::weight);
  EXPECT_EQ(use_at_peak(trace_).by_role,
            (std::map<std::string, Bytes>{{"activation", 150}, {"weight", 7}}));
}

TEST_F(UseAtPeak, knows_reserved_bytes_only_where_segments_hold_every_block) {
  event(EventKind::segment_alloc, 1, 200);
  event(EventKind::alloc, 2, 150, 0);
  event(EventKind::segment_free, 1, 0);
  EXPECT_EQ(use_at_peak(trace_).reserved, 200U);
  event(EventKind::alloc, 3, 100, 0);
  EXPECT_FALSE(use_at_peak(trace_).reserved);
}

}  // namespace
}  // namespace headroom::peak_use_test
