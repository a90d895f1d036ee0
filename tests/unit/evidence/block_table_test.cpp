#include "harness/evidence/block_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom::block_table_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two configurations on the host in four planned blocks, on a machine with a peak of 100 GFLOP/s.
class Blocks : public ::testing::Test {
 protected:
  static Experiment experiment(const char* device) {
    Cell cell;
    cell.device = Spec(device);
    return {.id = "e", .origin = "s", .point = "", .arms = {{"a", cell}, {"b", cell}}, .blocks = 4};
  }

  void record(int block, double gflops, SampleStatus status = SampleStatus::ok) {
    for (const Arm& arm : experiments_[0].arms) record_arm(block, arm.name, gflops, status);
  }
  void record_arm(int block, const std::string& arm, double gflops,
                  SampleStatus status = SampleStatus::ok) {
    Sample sample;
    sample.experiment = "e";
    sample.arm = arm;
    sample.block = block;
    sample.status = status;
    sample.probe_before_gflops = 100;
    sample.probe_after_gflops = gflops;
    table_.remember(sample);
  }

  std::vector<Experiment> experiments_ = {experiment("host")};
  BlockTable table_{experiments_};
};

TEST_F(Blocks, are_not_repeated_at_full_speed) {
  for (int block = 0; block < 4; ++block) record(block, 81);
  EXPECT_THAT(table_.repeats_due(0, 0), IsEmpty());
  EXPECT_EQ(table_.slow_blocks(), 0);
}

TEST_F(Blocks, are_repeated_under_fresh_numbers_when_a_probe_was_below_four_fifths_of_the_best) {
  record(0, 100);
  record(1, 79);
  record(2, 100);
  record(3, 100);
  EXPECT_THAT(table_.repeats_due(0, 0), ElementsAre(4));
  EXPECT_EQ(table_.slow_blocks(), 1);
}

TEST_F(Blocks, are_repeated_at_most_once_for_every_two_planned) {
  for (int block = 0; block < 4; ++block) record(block, 50);
  EXPECT_THAT(table_.repeats_due(0, 0), ElementsAre(4, 5));
  record(4, 50);
  record(5, 50);
  EXPECT_THAT(table_.repeats_due(0, 0), IsEmpty());
}

TEST_F(Blocks, are_not_repeated_beyond_the_bound_of_the_command_line) {
  for (int block = 0; block < 4; ++block) record(block, 50);
  EXPECT_THAT(table_.repeats_due(0, 5), ElementsAre(4));
  EXPECT_THAT(table_.repeats_due(0, 4), IsEmpty());
}

TEST_F(Blocks, need_no_more_repeats_once_enough_are_good) {
  record(0, 50);
  for (int block = 1; block < 5; ++block) record(block, 100);
  EXPECT_THAT(table_.repeats_due(0, 0), IsEmpty());
}

TEST_F(Blocks, with_a_failed_arm_are_not_repeated_for_slowness) {
  for (int block = 0; block < 4; ++block) record(block, 50, SampleStatus::timeout);
  EXPECT_EQ(table_.slow_blocks(), 0);
}

TEST_F(Blocks, of_a_gpu_are_not_repeated_for_what_the_processor_did) {
  for (const Arm& arm : experiments_[0].arms) {
    Sample sample;
    sample.experiment = "e";
    sample.arm = arm.name;
    sample.cell.device = Spec("cuda");
    sample.probe_before_gflops = 100;
    sample.probe_after_gflops = 10;
    table_.remember(sample);
  }
  EXPECT_EQ(table_.slow_blocks(), 0);
}

TEST_F(Blocks, whose_threads_waited_for_a_core_are_repeated_whatever_the_probes_say) {
  Sample sample;
  sample.experiment = "e";
  sample.arm = "a";
  sample.probe_before_gflops = sample.probe_after_gflops = 100;
  sample.step_time_ns = {1000, 1000};
  for (const std::uint64_t waited : {200U, 201U}) {  // 10 % and more
    sample.cpu_wait_ns = waited;
    table_.remember(sample);
    EXPECT_EQ(table_.slow_blocks(), waited > 200 ? 1 : 0);
  }
}

TEST_F(Blocks, are_judged_by_the_best_speed_of_the_whole_run) {
  for (int block = 0; block < 3; ++block) record(block, 90);
  record(3, 130);
  EXPECT_EQ(table_.best_probe_gflops(), 130);
  EXPECT_EQ(table_.slow_blocks(), 4);  // the last one began at 100
}

TEST_F(Blocks, of_which_half_is_recorded_are_not_complete_and_can_be_forgotten) {
  record_arm(0, "a", 100);
  EXPECT_TRUE(table_.is_recorded(0, 0, "a"));
  EXPECT_FALSE(table_.is_complete(0, 0));
  table_.forget(0, 0);
  EXPECT_FALSE(table_.is_recorded(0, 0, "a"));
}

TEST_F(Blocks, without_noise_are_never_repeated) {
  experiments_ = {experiment("meta")};
  BlockTable exact(experiments_);
  EXPECT_TRUE(is_exact(experiments_[0]));
  EXPECT_THAT(exact.repeats_due(0, 0), IsEmpty());
}

}  // namespace
}  // namespace headroom::block_table_test
