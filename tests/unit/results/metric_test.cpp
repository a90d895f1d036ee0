#include "harness/results/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/home.h"
#include "harness/base/registry.h"
#include "harness/plan/scenario.h"
#include "tests/unit/support/synthetic_samples.h"

namespace headroom::metric_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Sample counted_sample(const std::string& device = "host") {
  Sample sample = synthetic::sample(synthetic::experiment(device), "new", 0);
  sample.step_time_ns = {900, 500, 100, 200, 300, 400};
  sample.minor_faults = {50, 10, 1, 2, 3, 6};
  sample.ledger.device_allocations = {7, 5, 0, 1, 0, 1};
  sample.ledger.reserved = {1, 2, 3, 4, 5};
  sample.process.resident = {10, 20, 30, 40, 50};
  sample.loss = {3, 2, 1};
  return sample;
}

double value(const std::string& name, const Sample& sample) {
  return find_metric(name).value(sample).value();
}

TEST(Metric, reads_each_moment_of_a_rung) {
  Sample sample = counted_sample();
  sample.driver.used.overall_peak = 500;
  sample.driver.process.initial = 7;
  EXPECT_EQ(value("reserved_bytes.initial", sample), 1);
  EXPECT_EQ(value("reserved_bytes.after_step_1", sample), 2);
  EXPECT_EQ(value("reserved_bytes.warmup_peak", sample), 3);
  EXPECT_EQ(value("reserved_bytes.steady_peak", sample), 4);
  EXPECT_EQ(value("reserved_bytes.overall_peak", sample), 5);
  EXPECT_EQ(value("process_bytes.overall_peak", sample), 50);
  EXPECT_EQ(value("device_bytes.overall_peak", sample), 500);
  EXPECT_EQ(value("device_process_bytes.initial", sample), 7);
  EXPECT_EQ(value("allocated_bytes.initial", sample), 100);
}

TEST(Metric, keeps_warm_up_and_steady_steps_apart) {
  const Sample sample = counted_sample();
  EXPECT_EQ(value("steady_step_time_ns", sample), 250);
  EXPECT_EQ(value("steady_step_time_max_ns", sample), 400);
  EXPECT_EQ(value("steady_step_time_p95_ns", sample), 400);
  EXPECT_EQ(value("first_steps_time_ns", sample), 1400);
  EXPECT_EQ(value("first_step_time_ns", sample), 900);
  EXPECT_EQ(value("steady_device_allocations_per_step", sample), 0.5);
  EXPECT_EQ(value("device_allocations_total", sample), 14);
  EXPECT_EQ(value("steady_minor_faults_per_step", sample), 3);
  EXPECT_DOUBLE_EQ(value("throughput_samples_per_s", sample), 4 / 250e-9);
  EXPECT_EQ(value("final_loss", sample), 1);
}

TEST(Metric, keeps_a_rare_slow_step_out_of_the_step_time_and_in_the_mean_and_the_throughput) {
  Sample sample = counted_sample();
  sample.step_time_ns = {900, 500, 100, 100, 100, 900};
  EXPECT_EQ(value("steady_step_time_ns", sample), 100);
  EXPECT_EQ(value("steady_step_time_mean_ns", sample), 300);
  EXPECT_EQ(value("steady_step_time_max_ns", sample), 900);
  EXPECT_DOUBLE_EQ(value("throughput_samples_per_s", sample), 4 / 300e-9);
}

TEST(Metric, of_work_leaves_out_what_each_step_waits_for_data) {
  Sample sample = counted_sample();
  sample.step_time_ns = {900, 500, 100, 200, 300, 400};
  sample.stall_time_ns = {0, 0, 90, 20, 30, 40};
  EXPECT_EQ(value("steady_work_time_ns", sample), (180 + 270) / 2);
  sample.stall_time_ns = {};
  EXPECT_FALSE(find_metric("steady_work_time_ns").value(sample)) << "an old file has no waits";
}

TEST(Metric, reads_the_growth_of_allocated_bytes_as_a_slope_after_warm_up) {
  Sample sample = counted_sample();
  constexpr const char* kGrowth = "steady_allocated_growth_bytes_per_step";
  sample.ledger.allocated_after_step = {0, 9999, 1000, 1100, 1200, 1300};
  EXPECT_EQ(value(kGrowth, sample), 100);
  sample.ledger.allocated_after_step = {5, 5, 1000, 1000, 1000, 1000};
  EXPECT_EQ(value(kGrowth, sample), 0);
  sample.ledger.allocated_after_step = {5, 5, 1300, 1200, 1100, 1000};
  EXPECT_EQ(value(kGrowth, sample), -100);
  sample.ledger.allocated_after_step = {5, 5, 1000};
  EXPECT_FALSE(find_metric(kGrowth).value(sample)) << "one step has no slope";
}

TEST(Metric, is_absent_where_the_sample_has_no_such_figure) {
  Sample sample = counted_sample();
  EXPECT_FALSE(find_metric("held_out_accuracy").value(sample));
  sample.step_time_ns = {900, 500};
  EXPECT_FALSE(find_metric("steady_step_time_ns").value(sample)) << "no step after warm-up";
  sample.ledger_available = false;
  EXPECT_FALSE(find_metric("reserved_bytes.initial").value(sample));
  sample.process.resident = {};
  EXPECT_FALSE(find_metric("process_bytes.initial").value(sample));
  EXPECT_FALSE(find_metric("device_bytes.initial").value(sample)) << "there is no driver to ask";
}

TEST(Metric, has_no_times_where_nothing_is_computed) {
  const Sample sample = counted_sample("meta(card=v100-16gb)");
  for (const char* name : {"steady_step_time_ns", "first_step_time_ns", "setup_ns",
                           "throughput_samples_per_s", "process_bytes.initial"})
    EXPECT_FALSE(find_metric(name).value(sample)) << name;
  EXPECT_TRUE(find_metric("reserved_bytes.initial").value(sample));
}

TEST(Metric, is_exact_for_bytes_and_noisy_for_times) {
  const Spec host("host");
  EXPECT_EQ(class_on(find_metric("reserved_bytes.initial"), host), Metric::Class::exact);
  EXPECT_EQ(class_on(find_metric("process_bytes.initial"), host), Metric::Class::noisy);
  EXPECT_EQ(class_on(find_metric("steady_step_time_ns"), host), Metric::Class::noisy);
}

TEST(Metric, has_a_name_of_its_own_each) {
  std::set<std::string> names;
  for (const Metric& metric : metrics()) EXPECT_TRUE(names.insert(metric.name).second);
}

// The tables of the report that compare metrics show no figures of scenarios.
TEST(Metric, of_which_more_is_better_is_the_same_one_for_the_report) {
  const std::string glossary = read_file(headroom_home() / "reports" / "data" / "glossary.toml");
  const std::size_t begin = glossary.find("\nmore = [");
  ASSERT_NE(begin, std::string::npos);
  const std::string listed = glossary.substr(begin, glossary.find(']', begin) - begin);
  for (const Metric& metric : metrics()) {
    const std::string kind = metric.name.substr(0, metric.name.find('.'));
    if (Registry<ScenarioKind>::instance().contains(kind)) continue;
    EXPECT_EQ(listed.find('"' + kind + '"') != std::string::npos,
              metric.better == Metric::Better::more)
        << metric.name;
  }
}

TEST(Metric, that_nobody_knows_is_answered_with_the_nearest_name) {
  EXPECT_THAT([] { find_metric("reserved_bytes.stedy_peak"); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'reserved_bytes.steady_peak'?")));
}

}  // namespace
}  // namespace headroom::metric_test
