// Small training runs: real steps on host, the same run on meta, and the properties of both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <cmath>

#include <cctype>
#include <filesystem>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/memory/allocator.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace_io.h"
#include "harness/trace/validator.h"
#include "harness/workload/workload.h"
#include "tests/registered_examples.h"
#include "tests/test_name.h"

namespace headroom::training_test {
namespace {

const char* const kTinyResNet = "resnet(depth=18,width=8,batch=4)";

Cell cell(const std::string& device, const std::string& rules, const std::string& allocator,
          const std::string& workload = kTinyResNet) {
  return {.workload = Spec::parse(workload),
          .device = Spec::parse(device),
          .rules = rules,
          .allocator = Spec::parse(allocator),
          .warmup_steps = 1,
          .measured_steps = 2};
}

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          ("headroom-" + std::to_string(::getpid()) + "-" + name))
      .string();
}

Trace trace_of(const Cell& cell, const std::string& name) {
  const std::string path = temporary(name);
  const Sample sample = run_cell(cell, 7, path);
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  Trace trace = read_trace(path);
  std::filesystem::remove(path);
  return trace;
}

// The first example of each allocator; tests/conformance sends random requests to the others.
std::vector<std::string> every_allocator() {
  std::vector<std::string> specs;
  for (const auto& [name, strategy] : Registry<AllocatorStrategy>::instance().all())
    if (!strategy.examples.empty()) specs.push_back(strategy.examples.front());
  return specs;
}

class EveryAllocator : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryAllocator, leaves_the_same_trace_on_host_and_on_meta_event_by_event) {
  const Trace host = trace_of(cell("host(capacity=1GiB)", "onednn", GetParam()), "host.hrtrace");
  const Trace meta = trace_of(cell("meta(capacity=1GiB)", "onednn", GetParam()), "meta.hrtrace");
  ASSERT_GT(host.events.size(), 1000u);
  EXPECT_EQ(first_difference(host, meta), "");
}

TEST_P(EveryAllocator, places_every_block_soundly_and_gives_everything_back) {
  const Trace trace = trace_of(cell("meta(capacity=1GiB)", "dense", GetParam()), "sound.hrtrace");
  EXPECT_THAT(violations(trace), ::testing::IsEmpty());
  std::int64_t live = 0;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == EventKind::alloc) ++live;
    if (event.kind == EventKind::free) --live;
  }
  EXPECT_EQ(live, 0);
}

TEST_P(EveryAllocator, changes_nothing_in_the_losses) {
  const Sample reference = run_cell(cell("host(capacity=1GiB)", "onednn", "malloc"), 7, "");
  const Sample sample = run_cell(cell("host(capacity=1GiB)", "onednn", GetParam()), 7, "");
  EXPECT_EQ(sample.loss, reference.loss);
}

INSTANTIATE_TEST_SUITE_P(Strategies, EveryAllocator, ::testing::ValuesIn(every_allocator()),
                         [](const auto& info) { return test_name(info.param); });

class EveryWorkload : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryWorkload, leaves_the_same_trace_on_host_and_on_meta_event_by_event) {
  const auto trace = [&](const std::string& device, const std::string& name) {
    return trace_of(cell(device, "onednn", "bfc(growth=on)", GetParam()), name);
  };
  const Trace host = trace("host(capacity=1GiB)", "host.hrtrace");
  const Trace meta = trace("meta(capacity=1GiB)", "meta.hrtrace");
  ASSERT_GT(host.events.size(), 100u);
  EXPECT_EQ(first_difference(host, meta), "");
}

TEST_P(EveryWorkload, trains_to_finite_losses_within_its_live_byte_bound_under_dense_rules) {
  const Sample host = run_cell(cell("host(capacity=1GiB)", "onednn", "malloc", GetParam()), 7, "");
  ASSERT_EQ(host.status, SampleStatus::ok) << host.reason;
  for (const double loss : host.loss) EXPECT_TRUE(std::isfinite(loss));
  const Sample meta = run_cell(cell("meta(capacity=1GiB)", "dense", "malloc", GetParam()), 7, "");
  EXPECT_EQ(meta.ledger.requested.overall_peak, meta.lower_bound_bytes);
}

INSTANTIATE_TEST_SUITE_P(Workloads, EveryWorkload,
                         ::testing::ValuesIn(registered_examples<WorkloadKind>()),
                         [](const auto& info) { return test_name(info.param); });

TEST(Training, takes_no_page_fault_in_a_steady_step_with_a_caching_allocator) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own allocator keeps freed memory back and touches new pages";
#endif
  Cell tiny = cell("host(capacity=1GiB)", "onednn", "bfc");
  tiny.warmup_steps = 3;
  tiny.measured_steps = 5;
  const Sample sample = run_cell(tiny, 7, "");
  std::vector<std::uint64_t> steady(sample.minor_faults.begin() + 3, sample.minor_faults.end());
  EXPECT_THAT(steady, ::testing::Each(0u));
}

TEST(Training, records_out_of_memory_as_a_result_when_the_weights_do_not_fit) {
  for (const char* device : {"host(capacity=256KiB)", "meta(capacity=256KiB)"}) {
    const Sample sample = run_cell(cell(device, "onednn", "bfc(growth=on)"), 7, "");
    EXPECT_EQ(sample.status, SampleStatus::oom);
    ASSERT_TRUE(sample.oom.has_value());
    EXPECT_EQ(sample.oom->capacity_bytes, 256 * kKiB);
    EXPECT_GT(sample.oom->requested_bytes, sample.oom->largest_free_bytes);
    EXPECT_TRUE(sample.step_time_ns.empty());
  }
}

TEST(Training, records_out_of_memory_inside_a_step_too) {
  const Sample fits = run_cell(cell("meta(capacity=1GiB)", "dense", "malloc"), 7, "");
  const Bytes capacity = fits.lower_bound_bytes - fits.lower_bound_bytes / 10;
  const Sample sample =
      run_cell(cell("meta(capacity=" + std::to_string(capacity) + ")", "dense", "malloc"), 7, "");
  EXPECT_EQ(sample.status, SampleStatus::oom);
  EXPECT_GT(sample.ledger.requested.initial, 0u) << "the weights had found their place";
}

TEST(Training, peaks_at_no_less_than_the_live_byte_lower_bound) {
  const Sample sample = run_cell(cell("meta(capacity=1GiB)", "dense", "malloc"), 7, "");
  EXPECT_EQ(sample.ledger.requested.overall_peak, sample.lower_bound_bytes)
      << "freed at last use, so requested bytes meet the bound exactly";
  EXPECT_GE(sample.ledger.reserved.overall_peak, sample.ledger.allocated.overall_peak);
  EXPECT_GE(sample.ledger.allocated.overall_peak, sample.ledger.requested.overall_peak);
}

TEST(Training, is_bit_identical_when_repeated_from_the_same_seed) {
  const Cell tiny = cell("host(capacity=1GiB)", "onednn", "bfc(growth=on)");
  EXPECT_EQ(run_cell(tiny, 11, "").loss, run_cell(tiny, 11, "").loss);
  EXPECT_NE(run_cell(tiny, 11, "").loss, run_cell(tiny, 12, "").loss);
}

// With ten classes, chance is 0.1. The same run with permuted training labels shows how much can be
// guessed from the images alone.
TEST(Training, learns_what_shuffled_labels_cannot_teach) {
  const auto accuracy = [](const std::string& labels) {
    Cell run = cell("host(capacity=2GiB)", "onednn", "bfc(growth=on)",
                    "resnet(depth=18,width=8,batch=32,held_out_batches=16,labels=" + labels + ")");
    run.warmup_steps = 1;
    run.measured_steps = 59;
    run.optimizer = Spec::parse("sgd(learning_rate=0.05)");
    return run_cell(run, 3, "").held_out_accuracy.value();
  };
  const double learnt = accuracy("as_read");
  const double shuffled = accuracy("shuffled");
  EXPECT_GT(learnt, 0.5);
  EXPECT_GT(learnt, 2 * shuffled);
}

}  // namespace
}  // namespace headroom::training_test
