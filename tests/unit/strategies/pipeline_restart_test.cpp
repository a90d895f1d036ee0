// A pipeline that is destroyed and rebuilt during a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/runner/run_cell.h"
#include "tests/unit/support/numbered_records.h"

namespace headroom::testing::pipeline_restart_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

std::vector<std::vector<Number>> taken(Pipeline& pipeline, int batches) {
  std::vector<std::vector<Number>> result;
  for (int i = 0; i < batches; ++i) result.push_back(next_batch(pipeline, 4));
  return result;
}

TEST(Restart, begins_again_from_the_first_batch_with_or_without_threads) {
  const NumberedWorkload workload({.count = 100, .batch = 4});
  const auto first = taken(*pipeline_over(workload, "stream"), 3);
  for (const char* spec : {"restart(3)|stream", "restart(3)|prefetch(2)|map(threads=2)|stream"}) {
    const auto pipeline = pipeline_over(workload, spec);
    for (int epoch = 0; epoch < 4; ++epoch) EXPECT_EQ(taken(*pipeline, 3), first) << spec;
  }
}

TEST(Restart, gives_back_what_the_stages_behind_it_kept) {
  const NumberedWorkload workload({.count = 8, .batch = 4});
  const auto pipeline = pipeline_over(workload, "restart(4)|cache|stream");
  taken(*pipeline, 4);
  const Bytes full = pipeline->host_bytes();
  EXPECT_EQ(workload.traffic().reads, 8) << "the second epoch came from the cache";
  taken(*pipeline, 1);
  EXPECT_EQ(full - pipeline->host_bytes(), 4 * sizeof(Number)) << "half an epoch so far";
  EXPECT_EQ(workload.traffic().reads, 12) << "read anew";
}

TEST(Restart, reports_each_stage_once_with_all_its_elements) {
  const NumberedWorkload workload({.count = 8, .batch = 4});
  const auto pipeline = pipeline_over(workload, "restart(4)|cache|stream");
  taken(*pipeline, 9);
  const auto reports = pipeline->reports();
  EXPECT_EQ(report_of(reports, "restart(4)").counters.at("restarts"), 2u);
  EXPECT_EQ(report_of(reports, "restart(4)").elements, 9u);
  EXPECT_EQ(report_of(reports, "batch").elements, 9u);
  EXPECT_EQ(report_of(reports, "cache").host_bytes_peak, 8 * sizeof(Number));
  // The present cache has seen one batch, so the hits of the previous caches must count.
  EXPECT_EQ(pipeline->why_not_engaged(), std::nullopt);
}

TEST(Restart, is_engaged_once_it_has_happened) {
  const NumberedWorkload workload({.count = 100, .batch = 4});
  const auto pipeline = pipeline_over(workload, "restart(2)|stream");
  taken(*pipeline, 2);
  EXPECT_THAT(pipeline->why_not_engaged(),
              Optional(HasSubstr("the run ended before that many batches")));
  taken(*pipeline, 1);
  EXPECT_EQ(pipeline->why_not_engaged(), std::nullopt);
}

TEST(Restart, stands_outermost_and_names_its_batches) {
  for (const char* bad : {"restart|stream", "restart(0)|stream", "prefetch(2)|restart(3)|stream",
                          "restart(3)|restart(2)|stream"})
    EXPECT_THROW(check_pipeline(Spec::parse_composition(bad)), InputError) << bad;
}

Sample run(const std::string& workload, const std::string& pipeline) {
  const Cell cell{.workload = Spec::parse(workload),
                  .device = Spec::parse("host(capacity=1GiB)"),
                  .rules = "onednn",
                  .allocator = Spec::parse("bfc(growth=on)"),
                  .pipeline = Spec::parse_composition(pipeline),
                  .warmup_steps = 1,
                  .measured_steps = 6};
  Sample sample = run_cell(cell, 7, "");
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  return sample;
}

// The cycle of shapes continues; only the data begins again.
TEST(Restart, leaves_the_device_its_bytes_and_the_first_epoch_its_losses) {
  for (const auto& [workload, threads] :
       {std::pair("resnet(batch=4,depth=18,epoch=10,last_batch=keep,width=8)",
                  "restart(3)|prefetch(2)|map(threads=2)|stream"),
        std::pair("gan(batch=4,latent=8,width=4)", "restart(3)|prefetch(2)|memory"),
        std::pair("bert(batch=2,lengths=bucketed,preset=tiny,sequence=32)",
                  "restart(3)|prefetch(2)|direct")}) {
    SCOPED_TRACE(workload);
    const Sample plain = run(workload, "direct"), again = run(workload, "restart(3)|direct");
    EXPECT_TRUE(std::equal(again.loss.begin(), again.loss.begin() + 3, plain.loss.begin()));
    EXPECT_EQ(again.loss, run(workload, threads).loss);
    EXPECT_NE(again.loss, plain.loss);
    EXPECT_EQ(again.ledger.allocated_after_step, plain.ledger.allocated_after_step);
    EXPECT_EQ(again.ledger.requested.overall_peak, plain.ledger.requested.overall_peak);
  }
}

}  // namespace
}  // namespace headroom::testing::pipeline_restart_test
