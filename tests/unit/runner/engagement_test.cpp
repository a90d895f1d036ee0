// A cell whose strategy did not do what it promises gives no result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/registry.h"
#include "harness/memory/allocator.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace.h"
#include "harness/verdicts/matrix.h"
#include "tests/unit/support/trace_builder.h"
#include "workloads/data/image_batches.h"

namespace headroom::engagement_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

// Promises to take no memory in the first step but behaves like malloc. It has no examples, so no
// other test uses it.
const bool registered = Registry<AllocatorStrategy>::instance().add(
    {.name = "idle_in_step_one",
     .summary = "A strategy made for tests that does not do what its name says",
     .parameters = {},
     .examples = {},
     .create = [](const Spec&,
                  DeviceMemory& memory) { return make_allocator(Spec("malloc"), memory); },
     .why_not_engaged = [](const Spec& spec, const Trace& trace) -> Reason {
       for (const TraceEvent& event : trace.events)
         if (event.step == 1 && event.kind == EventKind::alloc)
           return spec.name() + ": step 1 took memory";
       return std::nullopt;
     }});

Cell cell(const char* allocator) {
  return {.workload = Spec::parse("resnet(depth=18,width=8,batch=4)"),
          .device = Spec::parse("meta(capacity=64MiB)"),
          .rules = "dense",
          .allocator = Spec::parse(allocator),
          .warmup_steps = 1,
          .measured_steps = 2};
}

TEST(Engagement, that_fails_makes_the_sample_invalid_with_its_reason) {
  const Sample sample = run_cell(cell("idle_in_step_one"), 7, "");
  EXPECT_EQ(sample.status, SampleStatus::invalid);
  EXPECT_EQ(sample.reason, "idle_in_step_one: step 1 took memory");
  EXPECT_EQ(run_cell(cell("malloc"), 7, "").status, SampleStatus::ok);
}

TEST(Engagement, that_fails_leaves_the_cell_in_the_matrix_as_invalid_and_without_figures) {
  Sample sample = run_cell(cell("idle_in_step_one"), 7, "");
  sample.experiment = "suite/x";
  sample.arm = "idle_in_step_one";
  const std::vector<Experiment> experiments = {
      {.id = "suite/x", .origin = "suite", .point = "", .arms = {{sample.arm, sample.cell}}}};
  const std::vector<Sample> samples = {sample};
  const auto matrix = make_matrix(experiments, SampleTable(samples), Reliability::full);
  ASSERT_EQ(matrix.size(), 1u);
  EXPECT_EQ(matrix[0].status, "invalid");
  EXPECT_THAT(matrix[0].reason, HasSubstr("step 1 took memory"));
  EXPECT_THAT(matrix[0].values, IsEmpty());
}

TEST(Engagement, of_malloc_is_a_device_allocation_for_every_block) {
  const auto& shows = Registry<AllocatorStrategy>::instance().find("malloc").why_not_engaged;
  TraceBuilder builder;
  builder.segment(1, 0x100000, 4096).alloc(1, 0x100000, 1024);
  EXPECT_EQ(shows(Spec("malloc"), builder.trace()), std::nullopt);
  builder.alloc(2, 0x100000 + 1024, 1024);
  EXPECT_THAT(shows(Spec("malloc"), builder.trace()),
              Optional(HasSubstr("2 blocks came from 1 device allocations")));
}

ImageSet images(std::vector<std::uint8_t> labels) {
  ImageSet set{
      .shape = {.channels = 1, .height = 1, .width = 1}, .pixels = {}, .labels = std::move(labels)};
  set.pixels.assign(set.labels.size(), 0);
  return set;
}

TEST(Engagement, of_shuffled_labels_is_that_most_of_them_moved) {
  const auto reason = [](std::vector<std::uint8_t> labels, Labels wanted) {
    ImageDataset dataset{
        .training = images(labels), .held_out = images(labels), .origin = "made for a test"};
    return make_image_batches(std::move(dataset),
                              {.batch = 1, .image_size = 1, .seed = 7, .labels = wanted})
        ->why_not_engaged();
  };
  std::vector<std::uint8_t> different(100);
  for (std::size_t i = 0; i < different.size(); ++i) different[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(reason(different, Labels::shuffled), std::nullopt);
  EXPECT_THAT(reason(std::vector<std::uint8_t>(100, 3), Labels::shuffled),
              Optional(HasSubstr("only 0 of 100 training labels changed")));
  EXPECT_EQ(reason(std::vector<std::uint8_t>(100, 3), Labels::as_read), std::nullopt);
}

}  // namespace
}  // namespace headroom::engagement_test
