// Batches in memory that a device copies from, and that are copied while it computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <thread>

#include "harness/base/error.h"
#include "harness/device/host/host_memory.h"
#include "harness/plan/accumulation.h"
#include "harness/plan/axes.h"
#include "harness/runner/run_cell.h"
#include "harness/training/trainer.h"
#include "tests/unit/support/numbered_records.h"

namespace headroom::testing::staging_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

std::vector<Number> numbers_in(const LentBatch& batch) {
  const std::span<std::byte> input = batch->front();
  std::vector<Number> numbers(input.size() / sizeof(Number));
  std::memcpy(numbers.data(), input.data(), input.size());
  for (Number& number : numbers) number = -number;
  return numbers;
}

TEST(Staging, lends_the_batches_of_the_stages_behind_it_in_their_order) {
  const NumberedWorkload workload({.count = 13, .batch = 4});
  const auto plain = pipeline_over(workload, "stream");
  const auto staged = pipeline_over(workload, "staging(2)|stream");
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(numbers_in(staged->lend_training_batch()), next_batch(*plain, 4)) << i;
}

TEST(Staging, uses_as_many_places_as_it_was_told_over_and_over) {
  const NumberedWorkload workload({.count = 13, .batch = 4});
  const auto pipeline = pipeline_over(workload, "staging(2)|stream");
  std::set<const std::byte*> places;
  for (int i = 0; i < 4; ++i) {  // both batches are lent; one place would not suffice
    const LentBatch one = pipeline->lend_training_batch();
    const LentBatch other = pipeline->lend_training_batch();
    places.insert({one->front().data(), other->front().data()});
  }
  EXPECT_EQ(places.size(), 2u);
  EXPECT_EQ(report_of(pipeline->reports(), "staging(2)").host_bytes_peak, 2 * kHostGranule);
}

TEST(Staging, counts_what_is_lent_among_the_batches_it_keeps) {
  const NumberedWorkload workload({.count = 100, .batch = 4});
  const auto pipeline = pipeline_over(workload, "staging(2)|stream");
  const LentBatch one = pipeline->lend_training_batch();
  const std::vector<Number> numbers = numbers_in(one);
  LentBatch other = pipeline->lend_training_batch();
  // Time for a thread that is not held back.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(workload.traffic().batches, 2);
  EXPECT_EQ(numbers_in(one), numbers) << "stays as it is while it is lent";
  other = nullptr;
  other = pipeline->lend_training_batch();
  EXPECT_GE(workload.traffic().batches, 3);
}

TEST(Staging, is_engaged_once_a_batch_was_lent) {
  const NumberedWorkload workload({.count = 100, .batch = 4});
  const auto pipeline = pipeline_over(workload, "staging(2)|stream");
  next_batch(*pipeline, 4);
  EXPECT_THAT(pipeline->why_not_engaged(),
              Optional(HasSubstr("no staged batch was copied to a device")));
  pipeline->lend_training_batch();
  EXPECT_EQ(pipeline->why_not_engaged(), std::nullopt);
}

TEST(Staging, is_what_lends_and_nothing_else) {
  const NumberedWorkload workload({.count = 100, .batch = 4});
  EXPECT_THROW(pipeline_over(workload, "prefetch(2)|stream")->lend_training_batch(), InputError);
}

// A host device whose staged copies arrive as late as possible: when they are waited for.
class LateCopies final : public Device {
 public:
  DeviceMemory& memory() override { return host_->memory(); }
  std::unique_ptr<DeviceMemory> make_host_memory() override { return host_->make_host_memory(); }
  std::unique_ptr<CompiledProgram> compile(const Program& lowered) override {
    return std::make_unique<Watched>(host_->compile(lowered), *this);
  }
  bool computes() const override { return true; }
  void write(const Value& value, std::byte* device, std::span<const std::byte> host) override {
    host_->write(value, device, host);
  }
  void read(const Value& value, const std::byte* device, std::span<std::byte> host) override {
    host_->read(value, device, host);
  }
  void stage(const Value& value, std::byte* device, std::span<const std::byte> host) override {
    under_way_.emplace_back([this, &value, device, host] { write(value, device, host); });
  }
  void finish_staging() override {
    for (const auto& copy : under_way_) copy();
    under_way_.clear();
  }
  void synchronize() override {}

  int ops_beside_copies() const { return ops_beside_copies_; }

 private:
  class Watched final : public CompiledProgram {
   public:
    Watched(std::unique_ptr<CompiledProgram> program, LateCopies& device)
        : program_(std::move(program)), device_(device) {}
    void run(std::size_t op_index, const OpBuffers& buffers) override {
      if (!device_.under_way_.empty()) ++device_.ops_beside_copies_;
      program_->run(op_index, buffers);
    }

   private:
    std::unique_ptr<CompiledProgram> program_;
    LateCopies& device_;
  };

  std::unique_ptr<Device> host_ = make_device(Spec::parse("host(capacity=1GiB)"));
  std::vector<std::function<void()>> under_way_;
  int ops_beside_copies_ = 0;
};

constexpr std::uint64_t kSeed = 7;

Cell cell(const std::string& workload, const std::string& pipeline,
          const std::string& device = "host(capacity=1GiB)") {
  return {.workload = Spec::parse(workload),
          .device = Spec::parse(device),
          .rules = "onednn",
          .allocator = Spec("malloc"),
          .pipeline = Spec::parse_composition(pipeline),
          .warmup_steps = 1,
          .measured_steps = 5};
}

Sample run(const Cell& cell) {
  Sample sample = run_cell(cell, kSeed, "");
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  return sample;
}

struct Trained {
  std::vector<double> losses;
  int ops_beside_copies = 0;
};

Trained train_with_late_copies(const Cell& cell) {
  LateCopies device;
  const auto workload = make_micro_batch_workload(cell);
  const TrainingPlan plan = plan_training(*workload, cell, cell.rules);
  const auto allocator = make_allocator(cell.allocator, device.memory());
  TraceRecorder recorder(0);
  auto batches = std::make_unique<Pipeline>(
      cell.pipeline, *workload, [&plan](std::uint64_t n) { return plan.input_bytes(n); }, kSeed,
      &device);
  Trainer trainer(plan, device, *allocator, recorder, std::move(batches), kSeed);
  Trained trained;
  for (int step = 0; step < cell.warmup_steps + cell.measured_steps; ++step)
    trained.losses.push_back(trainer.step().loss);
  trained.ops_beside_copies = device.ops_beside_copies();
  return trained;
}

struct Case {
  std::string workload, accumulation;
};

class EveryStagedWorkload : public ::testing::TestWithParam<Case> {};

// A step reads no batch before it has arrived, and no batch is overwritten while it is being
// copied.
TEST_P(EveryStagedWorkload, trains_to_the_same_losses_however_late_the_copies_arrive) {
  for (const char* staged : {"staging(2)", "staging(3)|slow(ms=1)|direct"}) {
    Cell direct = cell(GetParam().workload, "direct"), late = cell(GetParam().workload, staged);
    for (Cell* one : {&direct, &late}) set_axis(*one, "accumulation", GetParam().accumulation);
    const Trained trained = train_with_late_copies(late);
    EXPECT_EQ(trained.losses, run(direct).loss) << staged;
    EXPECT_GT(trained.ops_beside_copies, 0) << staged;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Staging, EveryStagedWorkload,
    ::testing::Values(
        Case{"resnet(batch=4,depth=18,epoch=10,evaluate_every=2,last_batch=keep,width=8)", "none"},
        Case{"resnet(batch=4,depth=18,width=8)", "micro_batches(k=4)"},
        Case{"gan(batch=4,latent=8,width=4)", "none"},
        Case{"gan(batch=4,latent=8,width=4)", "micro_batches(k=2)"},
        Case{"bert(batch=2,lengths=bucketed,sequence=32,size=tiny,vocabulary=500)", "none"}));

TEST(Staging, holds_the_inputs_of_one_more_run_on_the_device_on_host_as_on_meta) {
  const std::string workload = "resnet(batch=4,depth=18,width=8)";
  const Sample direct = run(cell(workload, "direct"));
  const Sample host = run(cell(workload, "staging(2)"));
  const Sample meta = run(cell(workload, "staging(2)", "meta(capacity=1GiB)"));
  EXPECT_EQ(host.ledger.requested.steady_peak,
            direct.ledger.requested.steady_peak + 4 * (3 * 32 * 32 + 1) * 4)
      << "images and labels";
  EXPECT_EQ(host.ledger.requested.overall_peak, meta.ledger.requested.overall_peak);
  EXPECT_EQ(host.ledger.allocated.overall_peak, meta.ledger.allocated.overall_peak);
  EXPECT_EQ(host.ledger.allocated_after_step, meta.ledger.allocated_after_step);
}

// Discriminator and generator each process all micro-batches.
TEST(Staging, of_networks_that_take_turns_needs_room_for_all_they_go_over) {
  for (const char* device : {"host(capacity=1GiB)", "meta(capacity=1GiB)"}) {
    Cell crowded = cell("gan(batch=6,latent=8,width=4)", "staging(2)", device);
    set_axis(crowded, "accumulation", "micro_batches(k=3)");
    const Sample sample = run_cell(crowded, kSeed, "");
    EXPECT_EQ(sample.status, SampleStatus::unsupported);
    EXPECT_THAT(sample.reason, HasSubstr("keep 3 of them at a time"));
    crowded.pipeline = Spec::parse_composition("staging(3)");
    run(crowded);
  }
}

// Memory runs out in the middle of a step while copies are running.
TEST(Staging, that_runs_out_of_memory_ends_as_any_other_run_does) {
  const std::string workload = "resnet(batch=4,depth=18,width=8)";
  const Bytes needed = run(cell(workload, "staging(2)")).ledger.reserved.overall_peak;
  const std::string less = "host(capacity=" + std::to_string(needed - kHostGranule) + ")";
  EXPECT_EQ(run_cell(cell(workload, "staging(2)", less), kSeed, "").status, SampleStatus::oom);
}

}  // namespace
}  // namespace headroom::testing::staging_test
