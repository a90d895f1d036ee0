// Gradient accumulation trains as the whole batch does if no op mixes samples, with less memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/recording_allocator.h"
#include "harness/memory/unlimited_allocator.h"
#include "harness/plan/accumulation.h"
#include "harness/plan/axes.h"
#include "harness/runner/run_cell.h"
#include "harness/training/trainer.h"
#include "tests/unit/support/small_cells.h"

namespace headroom::accumulation_test {
namespace {

using testing::losses_of;

Cell cell(const std::string& workload, const std::string& accumulation,
          const std::string& device = testing::kSmallHost) {
  return testing::small_cell(workload, {{"accumulation", accumulation}}, 4, device);
}

// Normalises layers only, and every text has the same number of predictions.
TEST(Accumulation, trains_as_the_whole_batch_does_where_samples_are_apart_and_weigh_the_same) {
  const char* const gpt = "gpt(preset=tiny,dropout=0,batch=8)";
  const auto whole = losses_of(cell(gpt, "none"));
  for (const char* parts : {"micro_batches(k=2)", "micro_batches(k=4)", "micro_batches(k=8)"}) {
    const auto divided = losses_of(cell(gpt, parts));
    ASSERT_EQ(divided.size(), whole.size());
    for (std::size_t step = 0; step < whole.size(); ++step)
      EXPECT_NEAR(divided[step], whole[step], 1e-5 * whole[step]) << parts << " step " << step + 1;
  }
}

std::vector<float> weights_after(const Cell& cell, int steps) {
  const DeviceKind& kind = Registry<DeviceKind>::instance().find(cell.device.name());
  const auto workload = make_micro_batch_workload(cell);
  const TrainingPlan plan = plan_training(*workload, cell, cell.rules);
  const auto device = kind.create(cell.device);
  TraceRecorder recorder(0);
  const auto allocator = make_allocator(cell.allocator, device->memory());
  Trainer trainer(plan, *device, *allocator, recorder, workload->open_data(5), 5);
  for (int step = 0; step < steps; ++step) trainer.step();
  std::vector<float> weights;
  for (const Value* value : plan.persistent_values()) {
    if (value->role != Role::weight) continue;
    const auto bytes = trainer.read_persistent(*value);
    const std::size_t before = weights.size();
    weights.resize(before + bytes.size() / sizeof(float));
    std::memcpy(weights.data() + before, bytes.data(), bytes.size());
  }
  return weights;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

TEST(Accumulation, that_weighs_labels_trains_as_the_whole_batch_does_where_texts_differ_in_length) {
  // One text in ten is short and has fewer labels; among 64 texts, parts certainly differ.
  const char* const bert = "bert(preset=tiny,dropout=0,batch=64)";
  const auto whole = weights_after(cell(bert, "none"), 2);
  const auto by_labels = weights_after(cell(bert, "micro_batches(k=8,weigh=labels)"), 2);
  const auto by_parts = weights_after(cell(bert, "micro_batches(k=8)"), 2);
  ASSERT_EQ(by_labels.size(), whole.size());
  EXPECT_LT(largest_difference(by_labels, whole), 1e-6);
  EXPECT_GT(largest_difference(by_parts, whole), 10 * largest_difference(by_labels, whole));
}

TEST(Accumulation, trains_differently_where_batch_normalisation_sees_the_parts) {
  const char* const resnet = "resnet(depth=18,width=8,batch=8)";
  const auto whole = losses_of(cell(resnet, "none"));
  const auto divided = losses_of(cell(resnet, "micro_batches(k=4)"));
  EXPECT_GT(std::abs(divided.front() - whole.front()), 1e-4);
}

TEST(Accumulation, runs_every_part_before_each_update_of_networks_that_take_turns) {
  const auto whole = run_cell(cell("gan(preset=tiny,batch=8)", "none"), 5, "");
  const auto divided = run_cell(cell("gan(preset=tiny,batch=8)", "micro_batches(k=2)"), 5, "");
  ASSERT_EQ(divided.status, SampleStatus::ok) << divided.reason;
  EXPECT_EQ(divided.samples_per_step, whole.samples_per_step);
  for (const double loss : divided.loss) EXPECT_TRUE(std::isfinite(loss));
}

TEST(Accumulation, asks_for_less_than_the_whole_batch) {
  const char* const meta = "meta(capacity=64GiB)";
  const char* const bert = "bert(size=base,batch=32,sequence=128)";
  const auto whole = run_cell(cell(bert, "none", meta), 5, "");
  const auto divided = run_cell(cell(bert, "micro_batches(k=8)", meta), 5, "");
  EXPECT_LT(divided.lower_bound_bytes, whole.lower_bound_bytes / 2);
}

TEST(Accumulation, refuses_what_cannot_be_divided) {
  EXPECT_THROW(make_micro_batch_workload(cell("resnet(depth=18,batch=6)", "micro_batches(k=4)")),
               InputError);
  Cell any;
  EXPECT_THROW(
      plan_training(*make_workload(Spec::parse("gan(preset=tiny,batch=8)")),
                    cell("gan(preset=tiny,batch=8)", "micro_batches(k=2,weigh=labels)"), "dense"),
      NotSupported);
  for (const char* bad : {"micro_batches(k=1)", "micro_batches(k=-2)", "micro_batches(m=2)", "sum"})
    EXPECT_THROW(set_axis(any, "accumulation", bad), InputError) << bad;
}

}  // namespace
}  // namespace headroom::accumulation_test
