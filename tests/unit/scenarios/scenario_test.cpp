#include "harness/plan/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/base/error.h"
#include "harness/runner/run_cell.h"
#include "harness/whatif/replay.h"
#include "harness/whatif/training_requests.h"

namespace headroom::scenario_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Cell cell_of(const std::string& scenario) {
  Cell cell;
  cell.scenario = Spec::parse(scenario);
  cell.workload = Spec::parse("resnet(depth=18,width=8)");
  cell.device = Spec::parse("meta(capacity=64MiB)");
  cell.rules = "dense";
  cell.allocator = Spec::parse("bfc(growth=on)");
  cell.warmup_steps = 1;
  cell.measured_steps = 1;
  return cell;
}

TEST(Scenario, that_is_training_leaves_the_name_of_a_cell_as_it_was) {
  Cell cell = cell_of("train");
  EXPECT_TRUE(trains(cell));
  EXPECT_THAT(cell.id(), Not(HasSubstr("scenario")));
  cell.scenario = Spec("largest_batch");
  EXPECT_THAT(cell.id(), HasSubstr(" scenario=largest_batch"));
}

TEST(Scenario, is_refused_under_a_name_or_parameter_nobody_knows) {
  EXPECT_THAT([] { check_scenario(Spec::parse("largest_bach")); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'largest_batch'?")));
  EXPECT_THROW(check_scenario(Spec::parse("largest_batch(of=bert)")), InputError);
  EXPECT_THROW(check_scenario(Spec::parse("interface(name=made_up)")), InputError);
}

TEST(Scenario, gives_a_sample_figures_that_survive_the_file) {
  const Sample sample = run_cell(cell_of("largest_batch"), 7, "");
  ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  const Sample read = sample_from_json(to_json(sample));
  EXPECT_EQ(read.figures, sample.figures);
  EXPECT_EQ(read.cell.id(), sample.cell.id());
  EXPECT_EQ(find_metric("largest_batch.largest_batch").value(read),
            sample.figures.at("largest_batch"));
  EXPECT_EQ(find_metric("script.holds").value(read), std::nullopt) << "another scenario's figure";
}

// Whether a batch trains, according to the recorded run.
bool trains_at(Cell cell, int batch) {
  cell.scenario = Spec(kTraining);
  cell.workload.set("batch", std::to_string(batch));
  return run_cell(cell, 1, "").status == SampleStatus::ok;
}

TEST(LargestBatch, trains_and_the_next_one_does_not) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const char* allocator : {"bfc(growth=on)", "bfc(growth=off)", "caching", "malloc"}) {
    Cell cell = cell_of("largest_batch");
    cell.allocator = Spec::parse(allocator);
    const int mebibytes = std::uniform_int_distribution(24, 96)(random);
    cell.device = Spec::parse("meta(capacity=" + std::to_string(mebibytes) + "MiB)");
    const auto figures = run_scenario(cell, 1).figures;
    const int largest = static_cast<int>(figures.at("largest_batch"));
    SCOPED_TRACE(cell.id());
    ASSERT_GT(largest, 0);
    EXPECT_LE(largest, figures.at("bound_by_live_bytes"));
    EXPECT_TRUE(trains_at(cell, largest));
    EXPECT_FALSE(trains_at(cell, largest + 1));
  }
}

TEST(LargestBatch, is_looked_for_on_a_simulated_device_only) {
  Cell cell = cell_of("largest_batch");
  cell.device = Spec::parse("host(capacity=64MiB)");
  EXPECT_THROW(run_scenario(cell, 1), InputError);
}

}  // namespace
}  // namespace headroom::scenario_test
