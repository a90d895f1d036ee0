#include <gtest/gtest.h>

#include "harness/runner/run_time.h"

namespace headroom::run_time_test {
namespace {

using std::chrono::seconds;

Experiment experiment(const char* device, int blocks, int max_blocks = 0) {
  Cell cell;
  cell.device = Spec(device);
  return {.id = "e",
          .origin = "s",
          .point = "",
          .arms = {{"a", cell}, {"b", cell}},
          .blocks = blocks,
          .max_blocks = max_blocks,
          .estimated_seconds = 3};
}

TEST(RunTime, of_exact_figures_is_that_of_the_planned_samples) {
  const RunTime time = estimate({experiment("meta", 2)});
  EXPECT_EQ(time.planned, seconds(12));
  EXPECT_EQ(time.longest, seconds(12));
  EXPECT_EQ(to_string(time), "12 s");
}

TEST(RunTime, of_timed_blocks_ranges_to_all_repeats_of_the_largest_second_stage) {
  const RunTime time = estimate({experiment("host", 4, 10), experiment("meta", 2)});
  EXPECT_EQ(time.planned, seconds(4 * 6 + 12));
  EXPECT_EQ(time.longest, seconds(15 * 6 + 12));
  EXPECT_EQ(to_string(time), "36 s, or up to 1 min 42 s where timed blocks must be repeated");
}

}  // namespace
}  // namespace headroom::run_time_test
