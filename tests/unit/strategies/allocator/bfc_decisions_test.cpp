// Whole sequences of bfc's decisions, worked out by hand from the rules of TensorFlow's and XLA's
// allocator: the region, the chunk, whether it is split, what is merged and what is released.
#include <gmock/gmock.h>

#include "harness/base/error.h"
#include "tests/unit/strategies/allocator/decision_log.h"

namespace headroom::bfc_decisions_test {
namespace {

using ::testing::ElementsAre;

using BfcDecisions = DecisionLog;

TEST_F(BfcDecisions, with_growth_are_those_of_the_documented_rules) {
  make("bfc(garbage_collection=off,growth=on,limit=64MiB)");
  take(1000);      // the first region has 2 MiB, so the next would have 4
  take(kMiB);      // 2047 KiB are less than twice that: given whole
  take(3 * kMiB);  // a region of 4 MiB, less than twice the request; the next would have 8
  EXPECT_THAT(decisions(), ElementsAre("segment 1: 2MiB", "1KiB at 1+0", "2047KiB at 1+1KiB",
                                       "segment 2: 4MiB", "4MiB at 2+0"));
  give(take(20 * kMiB));  // 8 → 16 → 32 until it fits, and then not once more
  const Block a = take(5 * kMiB);
  take(5 * kMiB);
  const Block b = take(9 * kMiB);
  EXPECT_THAT(decisions(), ElementsAre("segment 3: 32MiB", "32MiB at 3+0", "free 3+0",
                                       "5MiB at 3+0", "5MiB at 3+5MiB", "9MiB at 3+10MiB"));
  give(a);
  give(b);          // joins the 13 MiB after it
  take(4 * kMiB);   // the smallest chunk that fits is a's, less than twice the request
  take(26 * kMiB);  // 32 would be the next region's size, but 26 are left of the limit
  EXPECT_THROW(take(23 * kMiB), OutOfMemory);
  take(22 * kMiB);
  EXPECT_THAT(decisions(),
              ElementsAre("free 3+0", "free 3+10MiB", "5MiB at 3+0", "segment 4: 26MiB",
                          "26MiB at 4+0", "refused 23MiB", "22MiB at 3+10MiB"));
}

TEST_F(BfcDecisions, with_garbage_collection_give_idle_regions_back_as_the_last_resort) {
  make("bfc(growth=on)", "meta(capacity=30MiB)");
  const Block a = take(2 * kMiB);
  const Block b = take(4 * kMiB);
  const Block c = take(8 * kMiB);
  give(a);
  give(c);
  decisions();
  take(16 * kMiB);  // 16 are left of the limit: a new region, nothing is given back
  EXPECT_THROW(take(11 * kMiB), OutOfMemory);  // 10 are idle: not enough, so they stay
  EXPECT_THAT(decisions(), ElementsAre("segment 4: 16MiB", "16MiB at 4+0", "refused 11MiB"));
  take(10 * kMiB);  // both idle regions are freed, in the order of their allocation
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1 back", "segment 3 back", "segment 5: 10MiB", "10MiB at 5+0"));
  give(b);
}

TEST_F(BfcDecisions, with_preallocation_cut_one_region) {
  make("bfc", "meta(capacity=1GiB)");
  const Block a = take(300 * kMiB);
  const Block b = take(400 * kMiB);
  take(256);
  give(a);
  give(b);
  // From 700 MiB: the chunk is split, because 200 MiB exceed the allowed slack of 128.
  take(500 * kMiB);
  take(150 * kMiB);  // from 200 MiB: 50 MiB of slack are allowed
  take(170 * kMiB);  // after the small block, from 324 MiB less 256 B: 154 MiB of slack
  EXPECT_THAT(decisions(),
              ElementsAre("segment 1: 1GiB", "300MiB at 1+0", "400MiB at 1+300MiB",
                          "256B at 1+700MiB", "free 1+0", "free 1+300MiB", "500MiB at 1+0",
                          "200MiB at 1+500MiB", "170MiB at 1+734003456B"));
}

}  // namespace
}  // namespace headroom::bfc_decisions_test
