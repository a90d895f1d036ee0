// Offloading: values that the backward pass reads are kept in host memory. The tests of
// checkpointing and of random pass stacks show that such steps train as the plain one does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "harness/base/error.h"
#include "harness/device/host/host_memory.h"
#include "harness/memory/host_store.h"
#include "harness/plan/axes.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/offload.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"
#include "harness/training/step_counts.h"
#include "harness/training/trainer.h"
#include "tests/unit/reference/reference.h"
#include "tests/unit/support/alike_layers.h"
#include "tests/unit/support/random_net.h"

namespace headroom::offload_test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Program offloaded(const Workload& workload, const std::string& strategy) {
  return apply_pass<CheckpointingStrategy>(differentiate(workload.training_forward()),
                                           Spec::parse(strategy));
}

// Identical layers. Of each layer, the backward pass reads the input of its gelu and, except for
// the first, the input of its linear; it also reads the probabilities, in its first op.
class Layers final : public Workload {
 public:
  static constexpr Bytes kActivation = Bytes{8} * 16 * 4;
  explicit Layers(std::int64_t layers) : layers_(layers) {}

  Program training_forward() const override { return alike_layers(layers_, 8, 16); }
  std::optional<Program> evaluation() const override { return std::nullopt; }
  std::int64_t batch_size() const override { return 8; }
  std::unique_ptr<BatchSource> open_data(std::uint64_t) const override { return nullptr; }

 private:
  std::int64_t layers_;
};

Offloaded count(const std::string& strategy, std::int64_t layers) {
  PersistentLayouts layouts;
  return count_offloaded(lower(offloaded(Layers(layers), strategy), "dense", layouts));
}

TEST(Offload, moves_of_a_chain_all_that_waits_for_the_backward_pass_and_is_not_wanted_at_once) {
  constexpr Bytes kOne = Layers::kActivation;
  for (const std::int64_t layers : {3, 12, 20}) {
    const auto kept = static_cast<Bytes>(2 * layers);  // the probabilities included
    const Offloaded all = count("offload(prefetch=0)", layers);
    EXPECT_EQ(all.moved, (kept - 1) * kOne) << layers;
    EXPECT_EQ(all.peak, (kept - 1) * kOne) << layers;
    EXPECT_EQ(count("offload(prefetch=0,share=0.5)", layers).moved, kept / 2 * kOne) << layers;
  }
}

TEST(Offload, that_prefetches_everything_moves_nothing_and_says_so) {
  EXPECT_EQ(count("offload(prefetch=1000)", 5).moved, 0U);
  Cell cell;
  set_axis(cell, "checkpointing", "offload(prefetch=1000)");
  EXPECT_EQ(plan_training(Layers(5), cell, "dense").not_engaged,
            "checkpointing=offload(prefetch=1000): no value of 'train' leaves the device");
}

// Checks the documented behaviour op by op in steps of random networks.
TEST(Offload, copies_out_behind_the_last_forward_use_and_back_so_many_ops_before_the_first_one) {
  std::mt19937_64 random(testing::test_seed());
  int journeys = 0;
  for (int round = 0; round < 30; ++round) {
    const testing::RandomNet net(random(), 4, {.across_samples = true, .ignored_labels = true});
    const std::size_t prefetch = random() % 6;
    const Program plain = differentiate(net.training_forward());
    const Program program = offloaded(net, "offload(prefetch=" + std::to_string(prefetch) + ")");
    validate(program);
    std::map<ValueId, std::size_t> left, left_at, back_at;  // counted in ops that are not copies
    std::map<ValueId, ValueId> origin;
    std::size_t place = 0;
    for (const Op& op : program.ops) {
      if (op.kind == "copy_out") {
        origin[op.outputs[0]] = op.inputs[0];
        left_at[op.inputs[0]] = place;
        ++journeys;
      } else if (op.kind == "copy_in") {
        ASSERT_TRUE(origin.contains(op.inputs[0]));
        origin[op.outputs[0]] = origin[op.inputs[0]];
        back_at[op.outputs[0]] = place;
      } else {
        const Op& was = plain.ops[place++];
        ASSERT_EQ(op.name, was.name);
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
          const ValueId id = op.inputs[i];
          EXPECT_FALSE(left_at.contains(id)) << op.name << " reads what has left";
          EXPECT_EQ(origin.contains(id) ? origin[id] : id, was.inputs[i]) << op.name;
          if (!back_at.contains(id)) continue;
          EXPECT_EQ(place - 1 - back_at[id], prefetch) << op.name;
          back_at.erase(id);
        }
      }
    }
    for (const auto& [id, at] : left_at) {
      const Op& last = plain.ops[at - 1];
      EXPECT_TRUE(std::count(last.inputs.begin(), last.inputs.end(), id) +
                  std::count(last.outputs.begin(), last.outputs.end(), id))
          << plain.value(id).name << " left behind " << last.name;
    }
    EXPECT_TRUE(back_at.empty()) << "something came back and was not read";
  }
  EXPECT_GT(journeys, 0);
}

Sample run(const std::string& workload, const std::string& checkpointing, const std::string& device,
           const std::string& execution = "last_use") {
  Cell cell{.workload = Spec::parse(workload),
            .device = Spec::parse(device),
            .rules = "onednn",
            .allocator = Spec("malloc"),
            .warmup_steps = 1,
            .measured_steps = 2};
  set_axis(cell, "checkpointing", checkpointing);
  set_axis(cell, "execution", execution);
  return run_cell(cell, 5, "");
}

constexpr const char* kResnet = "resnet(depth=18,stem=imagenet,image=32,width=8,batch=4)";

TEST(Offload, takes_from_the_host_what_meta_counts_and_what_the_programs_say) {
  for (const char* workload : {kResnet, "bert(preset=tiny)", "gan(preset=tiny)"}) {
    const Sample host = run(workload, "offload", "host(capacity=1GiB)");
    const Sample meta = run(workload, "offload", "meta(capacity=1GiB)");
    ASSERT_EQ(host.status, SampleStatus::ok) << workload << ": " << host.reason;
    EXPECT_EQ(host.figures, meta.figures) << workload;
    EXPECT_EQ(host.ledger.allocated.overall_peak, meta.ledger.allocated.overall_peak) << workload;
    const TrainingPlan plan =
        plan_training(*make_workload(host.cell.workload), host.cell, "onednn");
    const StepCounts counts = count_step(plan);
    EXPECT_GT(counts.offloaded, 0U);
    EXPECT_EQ(host.figures.at("offloaded_bytes_per_step"), static_cast<double>(counts.offloaded));
    EXPECT_EQ(host.figures.at("offload_peak_bytes"), static_cast<double>(counts.host_peak));
    EXPECT_GE(host.figures.at("offload_reserved_bytes"), host.figures.at("offload_peak_bytes"));
  }
}

// With many layers, most of the peak waits for the backward pass, on every processor and in all
// layouts of its library.
TEST(Offload, saves_bytes_of_the_device_and_no_loss_changes) {
  const char* const many = "bert(batch=8,hidden=64,layers=6,preset=tiny)";
  for (const char* execution : {"last_use", "eager", "graph", "graph(order=memory)",
                                "graph(order=depth_first)", "graph(order=breadth_first)"}) {
    const Sample plain = run(many, "none", "host(capacity=1GiB)", execution);
    const Sample with = run(many, "offload", "host(capacity=1GiB)", execution);
    ASSERT_EQ(with.status, SampleStatus::ok) << execution << ": " << with.reason;
    EXPECT_EQ(with.loss, plain.loss) << execution;
    EXPECT_LT(with.ledger.requested.steady_peak, plain.ledger.requested.steady_peak) << execution;
    EXPECT_EQ(with.lower_bound_bytes, with.ledger.requested.overall_peak) << execution;
  }
}

TEST(Offload, refuses_a_share_of_nothing_and_distances_backwards) {
  for (const char* bad : {"offload(share=0)", "offload(share=1.5)", "offload(prefetch=-1)"})
    EXPECT_THROW(offloaded(Layers(3), bad), InputError) << bad;
  Cell any;
  EXPECT_THROW(set_axis(any, "checkpointing", "offload(ahead=1)"), InputError);
}

class NoWayOut final : public Device {
 public:
  DeviceMemory& memory() override { return memory_; }
  std::unique_ptr<CompiledProgram> compile(const Program&) override { return nullptr; }
  bool computes() const override { return false; }
  void write(const Value&, std::byte*, std::span<const std::byte>) override {}
  void read(const Value&, const std::byte*, std::span<std::byte>) override {}
  void synchronize() override {}

 private:
  HostMemory memory_{64 * kMiB};
};

TEST(Offload, is_not_supported_on_a_device_that_does_not_copy_to_the_host) {
  Cell cell;
  set_axis(cell, "checkpointing", "offload");
  const TrainingPlan plan = plan_training(Layers(5), cell, "dense");
  NoWayOut device;
  const auto allocator = make_allocator(Spec("malloc"), device.memory());
  TraceRecorder recorder(0);
  EXPECT_THAT([&] { Trainer(plan, device, *allocator, recorder, nullptr, 1); },
              ThrowsMessage<NotSupported>(HasSubstr("offload on host or meta")));
}

TEST(HostStore, keeps_what_is_given_back_for_the_next_of_its_size) {
  HostMemory memory(1 * kMiB);
  HostStore store(memory);
  const Block a = store.allocate(5000, {}), b = store.allocate(5000, {});
  std::memset(a.data, 1, 5000);
  EXPECT_EQ(store.peak(), 10000U);
  EXPECT_EQ(store.reserved_peak(), 4 * kHostGranule);
  store.deallocate(a);
  const Block other = store.allocate(4999, {});
  EXPECT_NE(other.address, a.address);
  EXPECT_EQ(store.allocate(5000, {}).address, a.address);
  EXPECT_EQ(store.peak(), 14999U);
  store.deallocate(b);
  EXPECT_THROW(store.deallocate(b), Error);
  EXPECT_EQ(store.statistics().live_blocks, 2U);
}

TEST(HostStore, gives_up_what_is_idle_before_it_refuses) {
  HostMemory memory(8 * kHostGranule);
  HostStore store(memory);
  store.deallocate(store.allocate(6 * kHostGranule, {}));
  EXPECT_NO_THROW(store.allocate(5 * kHostGranule, {}));
  EXPECT_THROW(store.allocate(5 * kHostGranule, {}), OutOfMemory);
  EXPECT_NO_THROW(store.allocate(3 * kHostGranule, {}));
}

}  // namespace
}  // namespace headroom::offload_test
