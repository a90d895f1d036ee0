// The adaptor binning: blocks of fixed sizes as RMM serves them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "tests/unit/strategies/allocator/decision_log.h"

namespace headroom::binning_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class Binning : public DecisionLog {};

TEST_F(Binning, cuts_blocks_of_powers_of_two_from_what_it_takes_many_at_a_time) {
  make("binning(blocks=2,largest=4KiB,smallest=1KiB)|malloc");
  for (const Bytes bytes : {1u, 1024u, 1000u, 1025u, 4096u, 8192u}) take(bytes);
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 2KiB", "1KiB at 1+0", "1KiB at 1+1KiB", "segment 2: 2KiB",
                          "1KiB at 2+0", "segment 3: 4KiB", "2KiB at 3+0", "segment 4: 8KiB",
                          "4KiB at 4+0", "segment 5: 8KiB", "8KiB at 5+0"));
}

TEST_F(Binning, serves_first_what_was_freed_first) {
  make("binning(blocks=2,largest=1KiB,smallest=1KiB)|malloc");
  const Block low = take(1000);
  const Block high = take(1000);
  give(high);
  give(low);
  EXPECT_EQ(take(1000).address, high.address);
  EXPECT_EQ(take(1000).address, low.address);
}

TEST_F(Binning, keeps_what_it_took_and_gives_back_what_the_strategy_behind_served) {
  make("binning(blocks=2,largest=1KiB,smallest=1KiB)|malloc");
  give(take(1000));
  give(take(4096));
  allocator().trim();
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 2KiB", "1KiB at 1+0", "free 1+0", "segment 2: 4KiB",
                          "4KiB at 2+0", "free 2+0", "segment 2 back"));
}

TEST_F(Binning, serves_no_stream_what_another_one_freed) {
  make("binning(blocks=1,largest=1KiB,smallest=1KiB)|malloc");
  const Block first = take(1000, 0);
  give(first);
  EXPECT_NE(take(1000, 1).address, first.address);
  EXPECT_EQ(take(1000, 0).address, first.address);
}

TEST_F(Binning, holds_a_block_back_until_every_stream_that_used_it_has_come_so_far) {
  make("binning(blocks=1,largest=1KiB,smallest=1KiB)|malloc");
  const Block used = take(1000);
  allocator().record_stream(used, 1);
  give(used);
  EXPECT_EQ(allocator().statistics().pending, kKiB);
  EXPECT_NE(take(1000).address, used.address);
  allocator().stream_synchronized(1);
  EXPECT_EQ(take(1000).address, used.address);
  EXPECT_EQ(allocator().statistics().pending, 0u);
}

TEST_F(Binning, waits_for_streams_before_it_refuses_a_request) {
  make("binning(blocks=1,largest=1MiB,smallest=1MiB)|malloc", "meta(capacity=2MiB,granule=1MiB)");
  const Block used = take(kMiB);
  take(kMiB);
  allocator().record_stream(used, 1);
  give(used);
  EXPECT_EQ(take(kMiB).address, used.address);
}

TEST_F(Binning, says_at_out_of_memory_what_was_asked_of_it) {
  make("binning(blocks=2,largest=1MiB,smallest=1MiB)|malloc", "meta(capacity=3MiB,granule=1MiB)");
  take(1000);
  take(1000);
  try {
    take(1000);
    FAIL() << "more than the capacity was served";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().requested_bytes, 1000u);
    EXPECT_EQ(error.report().allocated_bytes, 2 * kMiB);
  }
}

TEST_F(Binning, names_what_is_wrong_with_its_parameters) {
  const auto refuses = [&](const std::string& parameters, const std::string& because) {
    EXPECT_THAT([&] { make("binning(" + parameters + ")|malloc"); },
                ThrowsMessage<InputError>(HasSubstr(because)));
  };
  refuses("smallest=128", "powers of two from 256 on");
  refuses("largest=3MiB", "powers of two from 256 on");
  refuses("smallest=2MiB,largest=1MiB", "powers of two from 256 on");
  refuses("blocks=0", "blocks=0 must be at least 1");
  refuses("blocks=1025,largest=1MiB", "so many of 1.00 MiB must be in the device's 1.00 GiB");
}

}  // namespace
}  // namespace headroom::binning_test
