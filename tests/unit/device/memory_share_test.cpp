// Several logical devices on one physical device: each keeps its own limit, and together they
// cannot take more than there is.
#include "harness/device/memory_share.h"

#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/device/host/host_memory.h"
#include "harness/memory/allocator.h"

namespace headroom::memory_share_test {
namespace {

class Shares : public ::testing::Test {
 protected:
  HostMemory whole_{8 * kMiB};
};

TEST_F(Shares, keep_their_own_limit_while_the_device_has_room) {
  MemoryShare share(whole_, 2 * kMiB);
  const Segment held = share.allocate(2 * kMiB);
  EXPECT_THROW(share.allocate(1), OutOfMemory);
  EXPECT_EQ(whole_.available(), 6 * kMiB);
  share.free(held);
  EXPECT_EQ(share.available(), 2 * kMiB);
}

TEST_F(Shares, are_charged_to_the_device_they_are_cut_from) {
  MemoryShare a(whole_, 4 * kMiB);
  MemoryShare b(whole_, 4 * kMiB);
  const Segment in_a = a.allocate(5000);
  const Segment in_b = b.allocate(kMiB);
  EXPECT_EQ(a.reserved(), 8192u);
  EXPECT_EQ(whole_.reserved(), kMiB + 8192);
  EXPECT_EQ(whole_.counters().segment_allocations, 2u);
  a.free(in_a);
  b.free(in_b);
  EXPECT_EQ(whole_.reserved(), 0u);
}

TEST_F(Shares, never_hand_out_an_address_twice) {
  MemoryShare a(whole_, 4 * kMiB);
  MemoryShare b(whole_, 4 * kMiB);
  const Segment in_a = a.allocate(kMiB);
  const Segment in_b = b.allocate(kMiB);
  EXPECT_NE(in_a.address, in_b.address);
  EXPECT_NE(in_a.id, in_b.id);
  a.free(in_a);
  b.free(in_b);
}

TEST_F(Shares, that_promise_more_than_there_is_find_the_device_full) {
  MemoryShare a(whole_, 6 * kMiB);
  MemoryShare b(whole_, 6 * kMiB);
  const Segment held = a.allocate(6 * kMiB);
  EXPECT_EQ(b.available(), 2 * kMiB);
  EXPECT_THROW(b.allocate(3 * kMiB), OutOfMemory);
  EXPECT_EQ(b.reserved(), 0u);
  a.free(held);
}

TEST_F(Shares, take_no_more_once_they_hold_more_than_a_limit_set_later) {
  MemoryShare share(whole_, 4 * kMiB);
  const Segment first = share.allocate(2 * kMiB);
  const Segment second = share.allocate(kMiB);
  share.limit_to(2 * kMiB);
  EXPECT_EQ(share.reserved(), 3 * kMiB);
  EXPECT_EQ(share.available(), 0u);
  EXPECT_THROW(share.allocate(1), OutOfMemory);
  share.free(first);
  EXPECT_EQ(share.available(), kMiB);
  share.free(second);
}

TEST_F(Shares, serve_allocators_that_know_nothing_of_each_other) {
  MemoryShare a(whole_, 2 * kMiB);
  MemoryShare b(whole_, 4 * kMiB);
  const auto preallocating = make_allocator(Spec("bfc"), a);
  const auto growing = make_allocator(Spec("bfc", {{"growth", "on"}}), b);
  preallocating->allocate(1000, {});
  EXPECT_EQ(whole_.reserved(), 2 * kMiB);
  growing->allocate(3 * kMiB, {});
  EXPECT_THROW(preallocating->allocate(2 * kMiB, {}), OutOfMemory);
  EXPECT_THROW(growing->allocate(2 * kMiB, {}), OutOfMemory);
}

}  // namespace
}  // namespace headroom::memory_share_test
