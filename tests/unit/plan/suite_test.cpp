#include "harness/plan/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "harness/plan/filter.h"
#include "harness/plan/scenario.h"
#include "harness/plan/schedule.h"
#include "tests/unit/support/temporary_directory.h"

namespace headroom::suite_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kHead = "name = \"demo\"\ndescription = \"for tests\"\n";
constexpr const char* kMatrix = R"toml(
[[experiment]]
id = "grid"
workload = ["resnet(batch=4)", "resnet(batch=8)"]
device = ["host(capacity=1GiB)", "meta(card=v100-16gb)"]
rules = "dense"
allocator = ["malloc", "bfc(growth=off)", "bfc(growth=on)"]
baseline = "bfc(growth=off)"
warmup_steps = 1
measured_steps = 3
blocks = 6
timeout_s = 40
estimated_seconds = 1.5
)toml";

class SuiteFile : public ::testing::Test {
 protected:
  Suite read(const std::string& text, const AxisOverrides& overrides = {}) {
    return read_suite(place_.write("demo.toml", text), overrides);
  }
  std::string complaint(const std::string& text) {
    try {
      read(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no complaint";
  }
  TemporaryDirectory place_;
};

std::vector<std::string> arm_names(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const Arm& arm : experiment.arms) names.push_back(arm.name);
  return names;
}

TEST_F(SuiteFile, needs_no_workload_and_allocator_for_a_scenario_that_takes_none) {
  const std::string of_scenario =
      std::string(kHead) + "[[experiment]]\nid = \"one\"\ndevice = \"host\"\narms = \"scenario\"\n";
  const Suite suite = read(of_scenario + "scenario = \"cuda_start\"\n");
  ASSERT_EQ(suite.experiments.size(), 1u);
  EXPECT_EQ(suite.experiments[0].arms[0].cell.workload.name(), kNothing);
  EXPECT_EQ(suite.experiments[0].arms[0].cell.allocator.name(), kNothing);
  EXPECT_THAT(complaint(of_scenario + "scenario = \"largest_batch\"\n"),
              HasSubstr("names no workload"));
}

TEST_F(SuiteFile, makes_an_experiment_of_every_combination_with_allocators_as_arms) {
  const Suite suite = read(std::string(kHead) + "claims = [\"S02\"]" + kMatrix);
  EXPECT_THAT(suite.claims, ElementsAre("S02"));
  ASSERT_EQ(suite.experiments.size(), 4u);
  const Experiment& first = suite.experiments[0];
  EXPECT_EQ(first.id, "demo/grid/workload=resnet(batch=4) device=host(capacity=1GiB)");
  EXPECT_EQ(first.origin, "demo");
  EXPECT_EQ(first.timeout_s, 40);
  EXPECT_EQ(first.arms[0].cell.rules, "dense");
  EXPECT_EQ(first.arms[0].cell.measured_steps, 3);
}

TEST_F(SuiteFile, puts_the_baseline_first) {
  EXPECT_THAT(arm_names(read(std::string(kHead) + kMatrix).experiments[0]),
              ElementsAre("bfc(growth=off)", "malloc", "bfc(growth=on)"));
}

TEST_F(SuiteFile, runs_two_blocks_where_every_metric_is_exact) {
  const Suite suite = read(std::string(kHead) + kMatrix);
  EXPECT_EQ(suite.experiments[0].blocks, 6);
  EXPECT_EQ(suite.experiments[1].blocks, 2);
}

TEST_F(SuiteFile, takes_the_same_allocator_twice_as_two_arms) {
  const Suite suite = read(std::string(kHead) +
                           "[[experiment]]\nid='aa'\nworkload='resnet'\ndevice='host'\n"
                           "allocator=['malloc','malloc']\n");
  EXPECT_THAT(arm_names(suite.experiments[0]), ElementsAre("malloc", "malloc#2"));
}

TEST_F(SuiteFile, makes_the_arms_of_a_control_of_what_is_injected) {
  const std::string control =
      "[[experiment]]\nid='c'\nkind='control'\nworkload='resnet'\ndevice='host'\n"
      "allocator='malloc'\ninject=['none','none','leak']\n";
  const Suite suite = read(kHead + control, {{"allocator", {"bfc"}}});
  ASSERT_EQ(suite.experiments.size(), 1u);
  EXPECT_EQ(suite.experiments[0].kind, ExperimentKind::control);
  EXPECT_THAT(arm_names(suite.experiments[0]), ElementsAre("none", "none#2", "leak"));
  EXPECT_EQ(suite.experiments[0].arms[2].cell.allocator.to_string(), "malloc")
      << "the command line's axes are about what is measured, not about the instrument";
}

TEST_F(SuiteFile, refuses_a_control_without_a_clean_arm_or_without_an_effect) {
  const std::string control =
      "[[experiment]]\nid='c'\nkind='control'\nworkload='resnet'\ndevice='host'\n"
      "allocator='malloc'\n";
  EXPECT_THAT(complaint(kHead + control), HasSubstr("\"none\" first"));
  EXPECT_THAT(complaint(kHead + control + "inject=['leak']\n"), HasSubstr("\"none\" first"));
  EXPECT_THAT(complaint(kHead + control + "inject=['none']\n"),
              HasSubstr("then \"none\" again or effects"));
  EXPECT_THAT(complaint(kHead + std::string("[[experiment]]\nid='c'\nkind='cotrol'\n")),
              HasSubstr("did you mean 'control'?"));
}

TEST_F(SuiteFile, gives_way_to_axes_from_the_command_line) {
  const Suite suite =
      read(std::string(kHead) + kMatrix, {{"allocator", {"bfc(growth=on)"}}, {"device", {"host"}}});
  ASSERT_EQ(suite.experiments.size(), 2u);
  EXPECT_THAT(arm_names(suite.experiments[0]), ElementsAre("bfc(growth=on)"));
}

TEST_F(SuiteFile, is_refused_with_file_and_line) {
  EXPECT_THAT(complaint("name = \"demo\"\ndescription = \n"), HasSubstr("demo.toml:2: "));
  EXPECT_THAT(complaint(std::string(kHead) + "\nclaim = []\n"),
              AllOf(HasSubstr("demo.toml:4: "), HasSubstr("did you mean 'claims'?")));
  EXPECT_THAT(complaint(std::string(kHead) + "[[experiment]]\nid = \"x\"\nblocks = 0\n"),
              AllOf(HasSubstr("demo.toml:5: "), HasSubstr("from 1 on")));
  EXPECT_THAT(complaint(std::string(kHead) + "[[experiment]]\nid = \"x\"\nworkload = \"resent\"\n"),
              AllOf(HasSubstr("demo.toml:5: "), HasSubstr("did you mean 'resnet'?")));
  EXPECT_THAT(complaint(std::string(kHead) + "[[experiment]]\nid = \"x\"\nworkload = \"resnet\"\n"),
              HasSubstr("names no device"));
  EXPECT_THAT(complaint("description = \"x\"\n"), HasSubstr("lacks the key 'name'"));
  EXPECT_THAT(complaint(std::string(kHead) + kMatrix + kMatrix), HasSubstr("twice"));
}

TEST_F(SuiteFile, may_name_a_device_this_machine_lacks_but_no_unknown_one) {
  const std::string cell = "[[experiment]]\nid='x'\nworkload='resnet'\nallocator='malloc'\n";
  EXPECT_EQ(read(kHead + cell + "device='cuda'\n").experiments.size(), 1u);
  EXPECT_THAT(complaint(kHead + cell + "device='hots'\n"), HasSubstr("did you mean 'host'?"));
}

TEST_F(SuiteFile, is_filtered_by_globs_on_names_and_whole_values) {
  const auto experiments = read(std::string(kHead) + kMatrix).experiments;
  const auto select = [&](const char* text) { return Filter::parse(text).select(experiments); };
  EXPECT_EQ(select("device=meta").size(), 2u);
  EXPECT_EQ(select("device=meta,workload=resnet(batch=8)").size(), 1u);
  EXPECT_EQ(select("workload=resnet(batch=8*,device=meta").size(), 1u);
  EXPECT_THAT(arm_names(select("allocator=bfc*")[0]),
              ElementsAre("bfc(growth=off)", "bfc(growth=on)"));
  EXPECT_TRUE(select("claim=S02").empty());
  EXPECT_THAT([&] { select("alocator=bfc"); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'allocator'?")));
  EXPECT_THAT([&] { select("bfc"); }, ThrowsMessage<InputError>(HasSubstr("key=glob")));
}

TEST_F(SuiteFile, is_scheduled_in_rounds_with_every_arm_once_a_block) {
  const auto experiments = read(std::string(kHead) + kMatrix).experiments;
  const std::vector<SampleBlock> blocks = schedule(experiments, 7);
  ASSERT_EQ(blocks.size(), 6u + 2u + 6u + 2u);
  EXPECT_EQ(blocks[3].number, 0);
  EXPECT_EQ(blocks[4].number, 1);
  for (const SampleBlock& block : blocks)
    EXPECT_THAT(block.arms, ::testing::UnorderedElementsAre(0, 1, 2));
}

TEST_F(SuiteFile, keeps_the_order_of_a_block_when_others_are_filtered_away) {
  const auto experiments = read(std::string(kHead) + kMatrix).experiments;
  const SampleBlock whole = make_block(experiments[2], 2, 5, 7);
  const SampleBlock alone = make_block(experiments[2], 0, 5, 7);
  EXPECT_EQ(whole.arms, alone.arms);
  EXPECT_EQ(whole.seed, alone.seed);
}

TEST_F(SuiteFile, puts_every_arm_first_about_equally_often) {
  const Experiment experiment = read(std::string(kHead) + kMatrix).experiments[0];
  std::vector<int> first(3);
  for (int block = 0; block < 3000; ++block) ++first[make_block(experiment, 0, block, 7).arms[0]];
  // The expected count is 1000, with standard deviation 26. The seed is fixed, so the result never
  // varies.
  for (const int count : first) EXPECT_NEAR(count, 1000, 130);
}

}  // namespace
}  // namespace headroom::suite_test
