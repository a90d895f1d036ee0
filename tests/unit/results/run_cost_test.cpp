#include "harness/results/run_cost.h"

#include <gtest/gtest.h>

#include "tests/unit/support/synthetic_samples.h"

namespace headroom::run_cost_test {
namespace {

// Six steps of 1 ms, two of them warm-up.
Sample recorded(double ns_per_event, std::uint64_t steady_events) {
  const Experiment experiment = synthetic::experiment();
  Sample sample = synthetic::sample(experiment, "base", 0);
  sample.setup_ns = 2'000'000;
  sample.recording = {.ns_per_event = ns_per_event,
                      .events = 2 * steady_events,
                      .steady_events = steady_events,
                      .bytes = 100 * steady_events};
  return sample;
}

TEST(RunCost, divides_a_process_into_set_up_steps_and_the_rest) {
  RunCost cost;
  add_sample(cost, recorded(10, 100), 0.010);
  EXPECT_DOUBLE_EQ(cost.setup_s, 0.002);
  EXPECT_DOUBLE_EQ(cost.steps_s, 0.006);
  EXPECT_NEAR(cost.process_s, 0.002, 1e-12);
}

TEST(RunCost, of_two_runs_adds_up) {
  RunCost cost{.wall_s = 1,
               .steps_s = 2,
               .setup_s = 3,
               .process_s = 4,
               .probe_s = 5,
               .first_touch_s = 6,
               .recording = {}};
  add_cost(cost, cost);
  EXPECT_EQ(cost.wall_s + cost.steps_s + cost.setup_s + cost.process_s + cost.probe_s +
                cost.first_touch_s,
            42);
}

TEST(RecordingCost, is_a_share_of_the_steady_steps) {
  // 1000 events of 10 ns in 4 ms.
  const auto summary = summarize_recording({recorded(10, 1000)});
  ASSERT_TRUE(summary);
  EXPECT_DOUBLE_EQ(summary->share_of_step, 0.0025);
  EXPECT_DOUBLE_EQ(summary->bytes_per_event, 50);
  EXPECT_DOUBLE_EQ(summary->ns_per_event, 10);
}

TEST(RecordingCost, tells_the_median_and_the_largest_share) {
  const auto summary =
      summarize_recording({recorded(10, 1000), recorded(10, 2000), recorded(10, 8000)});
  EXPECT_DOUBLE_EQ(summary->share_of_step, 0.005);
  EXPECT_DOUBLE_EQ(summary->largest_share_of_step, 0.02);
}

TEST(RecordingCost, is_nothing_where_no_sample_trained) {
  Sample failed = recorded(10, 1000);
  failed.status = SampleStatus::crash;
  Sample counted = recorded(10, 1000);
  counted.cell.device = Spec::parse("meta(capacity=1GiB)");
  EXPECT_FALSE(summarize_recording({failed, counted}));
}

}  // namespace
}  // namespace headroom::run_cost_test
