// Injected effects really happen, and the metrics meant for them show them.
#include "harness/control/injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/results/metric.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace_io.h"
#include "harness/trace/validator.h"
#include "tests/unit/support/temporary_directory.h"

namespace headroom::injection_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// The cell of the suites' controls; under dense rules its byte counts are the same on every
// machine.
Cell cell(const std::string& inject, const std::string& device = "meta(capacity=256MiB)") {
  return {.workload = Spec::parse("resnet(batch=16,depth=18,width=16)"),
          .device = Spec::parse(device),
          .rules = device.starts_with("meta") ? "dense" : "onednn",
          .allocator = Spec::parse("bfc(growth=on)"),
          .inject = Spec::parse(inject),
          .warmup_steps = 2,
          .measured_steps = 5};
}

double figure(const char* metric, const Cell& cell) {
  const Sample sample = run_cell(cell, 7, "");
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  return find_metric(metric).value(sample).value();
}

TEST(Injection, of_a_leak_is_the_slope_of_allocated_bytes) {
  constexpr const char* kGrowth = "steady_allocated_growth_bytes_per_step";
  for (const char* device : {"meta(capacity=256MiB)", "host(capacity=256MiB)"}) {
    EXPECT_EQ(figure(kGrowth, cell("none", device)), 0) << device;
    EXPECT_EQ(figure(kGrowth, cell("leak(bytes=256KiB)", device)), 256 * kKiB) << device;
  }
}

TEST(Injection, of_fragmentation_raises_external_fragmentation) {
  EXPECT_GT(figure("external_fragmentation", cell("fragmentation")),
            0.1 + figure("external_fragmentation", cell("none")));
}

struct Nothing final : Allocator {
  Block allocate(Bytes, const AllocationHint&) override { return {}; }
  void deallocate(const Block&) override {}
  AllocatorStatistics statistics() const override { return {}; }
};

TEST(Injection, of_a_slowdown_waits_for_its_share_of_the_step) {
  using Clock = std::chrono::steady_clock;
  const InjectionKind& kind = Registry<InjectionKind>::instance().find("slowdown");
  Nothing allocator;
  const auto slowdown = kind.create(Spec::parse("slowdown(share=0.5)"), allocator);
  const auto begin = Clock::now();
  slowdown->end_step(std::chrono::milliseconds{4});
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds{2});
}

TEST(Injection, of_page_faults_appears_in_the_faults_of_each_step) {
  EXPECT_GE(figure("steady_minor_faults_per_step",
                   cell("work(amount=300,by=faults)", "host(capacity=256MiB)")),
            300);
}

TEST(Injection, of_work_that_alternates_rests_for_as_many_steps_as_it_works) {
  Nothing allocator;
  const auto work = Registry<InjectionKind>::instance().find("work").create(
      Spec::parse("work(alternate=2,amount=300,by=faults)"), allocator);
  std::vector<bool> worked;
  for (int step = 0; step < 6; ++step) {
    rusage before{}, after{};
    getrusage(RUSAGE_THREAD, &before);
    work->end_step({});
    getrusage(RUSAGE_THREAD, &after);
    worked.push_back(after.ru_minflt - before.ru_minflt >= 300);
  }
  EXPECT_THAT(worked, ElementsAre(false, false, true, true, false, false));
}

TEST(Injection, changes_nothing_in_what_is_learnt) {
  const auto losses = [](const char* inject) {
    Cell small = cell(inject, "host(capacity=256MiB)");
    small.workload = Spec::parse("resnet(batch=4,depth=18,width=8)");
    return run_cell(small, 7, "").loss;
  };
  const auto clean = losses("none");
  for (const auto& [name, kind] : Registry<InjectionKind>::instance().all())
    for (const std::string& example : kind.examples) EXPECT_EQ(losses(example.c_str()), clean);
}

TEST(Injection, gives_every_block_back_when_training_ends) {
  const TemporaryDirectory place;
  for (const char* inject : {"leak", "fragmentation"}) {
    const std::string file = (place.path() / "t.hrtrace").string();
    run_cell(cell(inject), 7, file);
    const Trace trace = read_trace(file);
    EXPECT_THAT(violations(trace), ::testing::IsEmpty());
    std::int64_t live = 0;
    for (const TraceEvent& event : trace.events)
      live += event.kind == EventKind::alloc ? 1 : event.kind == EventKind::free ? -1 : 0;
    EXPECT_EQ(live, 0) << inject;
  }
}

TEST(Injection, stands_in_the_name_of_its_cell_and_only_there) {
  EXPECT_THAT(cell("leak").id(), HasSubstr("inject=leak"));
  EXPECT_THAT(cell("none").id(), Not(HasSubstr("inject")));
}

TEST(Injection, is_refused_with_the_nearest_name) {
  EXPECT_THAT([] { check_injection(Spec::parse("leek")); },
              ThrowsMessage<InputError>(HasSubstr("did you mean 'leak'?")));
  EXPECT_THAT([] { check_injection(Spec::parse("leak(size=1)")); },
              ThrowsMessage<InputError>(HasSubstr("bytes")));
}

TEST(Injection, refuses_sizes_that_would_inject_nothing) {
  for (const char* spec : {"slowdown(share=0)", "leak(bytes=0)", "fragmentation(bytes=0)",
                           "work(amount=0)", "work(by=magic)", "work(alternate=-1)"})
    EXPECT_THROW(run_cell(cell(spec), 7, ""), InputError) << spec;
}

}  // namespace
}  // namespace headroom::injection_test
