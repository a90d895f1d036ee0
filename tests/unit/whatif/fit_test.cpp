// A plan must predict what a run on the same virtual device shows.
#include "harness/whatif/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/memory/allocator.h"
#include "harness/runner/run_cell.h"

namespace headroom::fit_test {
namespace {

Cell cell(const std::string& workload, const std::string& device) {
  return {.workload = Spec::parse(workload),
          .device = Spec::parse(device),
          .rules = "dense",
          .allocator = Spec("malloc"),
          .warmup_steps = 1,
          .measured_steps = 2};
}

std::vector<Spec> every_allocator() {
  std::vector<Spec> specs;
  for (const std::string& name : Registry<AllocatorStrategy>::instance().names())
    specs.emplace_back(name);
  return specs;
}

Sample run(Cell cell, const Spec& allocator, std::int64_t batch) {
  cell.allocator = allocator;
  cell.workload.set("batch", std::to_string(batch));
  return run_cell(cell, 1, "");
}

class PlannedWorkload : public ::testing::TestWithParam<std::string> {};

TEST_P(PlannedWorkload, peaks_under_every_allocator_where_a_run_peaks) {
  const Cell planned = cell(GetParam(), "meta(capacity=256MiB,granule=2MiB)");
  const Fit fit = find_fit(planned, every_allocator());
  for (const AllocatorFit& row : fit.allocators) {
    SCOPED_TRACE(row.allocator.to_string());
    const Sample sample = run(planned, row.allocator, fit.batch);
    ASSERT_EQ(sample.status == SampleStatus::oom, row.outcome.failure.has_value());
    EXPECT_EQ(row.outcome.ledger.requested.overall_peak, sample.ledger.requested.overall_peak);
    EXPECT_EQ(row.outcome.ledger.allocated.overall_peak, sample.ledger.allocated.overall_peak);
    EXPECT_EQ(row.outcome.ledger.reserved.overall_peak, sample.ledger.reserved.overall_peak);
    if (row.outcome.failure) continue;  // a run that fails gives back what it holds
    EXPECT_EQ(row.outcome.ledger.device_allocations, sample.ledger.device_allocations);
    EXPECT_EQ(row.outcome.ledger.device_frees, sample.ledger.device_frees);
  }
}

TEST_P(PlannedWorkload, fits_in_a_run_up_to_the_largest_batch_and_not_beyond) {
  const Cell planned = cell(GetParam(), "meta(capacity=96MiB)");
  for (const AllocatorFit& row : find_fit(planned, every_allocator()).allocators) {
    SCOPED_TRACE(row.allocator.to_string());
    ASSERT_GT(row.largest.batch, 1);
    EXPECT_NE(run(planned, row.allocator, row.largest.batch).status, SampleStatus::oom);
    EXPECT_EQ(run(planned, row.allocator, row.largest.batch + 1).status, SampleStatus::oom);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PlannedWorkload,
                         ::testing::Values("resnet(preset=tiny)", "gan(preset=tiny)",
                                           "bert(preset=tiny)", "gpt(preset=tiny)"),
                         [](const auto& info) {
                           return info.param.substr(0, info.param.find('('));
                         });

TEST(Fit, knows_a_batch_above_which_no_allocator_can_serve) {
  const Fit fit = find_fit(cell("resnet(preset=tiny)", "meta(capacity=64MiB)"), every_allocator());
  ASSERT_TRUE(fit.last_batch_by_live_bytes);
  for (const AllocatorFit& row : fit.allocators)
    EXPECT_LE(row.largest.batch, *fit.last_batch_by_live_bytes) << row.allocator.to_string();
}

TEST(Fit, divides_the_live_bytes_at_their_highest_by_role) {
  const Fit fit = find_fit(cell("bert(preset=tiny)", "meta(capacity=1GiB)"), {Spec("malloc")});
  const auto sum = std::accumulate(fit.live_at_peak.begin(), fit.live_at_peak.end(), Bytes{0});
  EXPECT_EQ(sum, fit.peak_live_bytes);
  EXPECT_EQ(fit.live_at_peak[static_cast<std::size_t>(Role::weight)],
            4 * static_cast<Bytes>(fit.parameters));
}

TEST(Fit, is_refused_on_a_device_that_computes) {
  EXPECT_THROW(find_fit(cell("resnet", "host(capacity=1GiB)"), {Spec("malloc")}), InputError);
}

}  // namespace
}  // namespace headroom::fit_test
