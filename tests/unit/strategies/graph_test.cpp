// Graph execution: less memory or another order of ops, with bit-identical results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/memory/recording_allocator.h"
#include "harness/plan/axes.h"
#include "harness/program/in_place.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/requests.h"
#include "harness/training/trainer.h"
#include "tests/unit/reference/reference.h"
#include "tests/unit/support/branching_net.h"

namespace headroom::graph_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

const ExecutionStrategy& strategy() {
  return Registry<ExecutionStrategy>::instance().find("graph");
}

std::vector<std::string> order_of(const Program& program) {
  std::vector<std::string> names;
  for (const Op& op : program.ops) names.push_back(op.name);
  return names;
}

bool reuses(const Program& program) {
  return std::any_of(program.ops.begin(), program.ops.end(),
                     [](const Op& op) { return in_place(op).has_value(); });
}

class RandomBatches final : public BatchSource {
 public:
  explicit RandomBatches(std::uint64_t seed) : random_(seed) {}

  // Fills the key, x and the labels.
  void next_training_batch(std::span<const std::span<std::byte>> inputs) override {
    fill<std::int32_t>(inputs[0], [&] { return static_cast<std::int32_t>(random_() >> 33); });
    fill<float>(inputs[1], [&] { return std::normal_distribution<float>()(random_); });
    fill<std::int32_t>(
        inputs[2], [&] { return static_cast<std::int32_t>(random_() % BranchingNet::kClasses); });
  }
  bool next_held_out_batch(std::span<const std::span<std::byte>>) override { return false; }
  void restart_held_out() override {}

 private:
  using BranchingNet = testing::BranchingNet;
  template <typename Element, typename Draw>
  void fill(std::span<std::byte> bytes, Draw draw) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(Element)) {
      const Element element = draw();
      std::memcpy(&bytes[i], &element, sizeof element);
    }
  }
  std::mt19937_64 random_;
};

class OneNet final : public Workload {
 public:
  explicit OneNet(Program forward) : forward_(std::move(forward)) {}
  Program training_forward() const override { return forward_; }
  std::optional<Program> evaluation() const override { return std::nullopt; }
  std::int64_t batch_size() const override { return 1; }
  std::unique_ptr<BatchSource> open_data(std::uint64_t seed) const override {
    return std::make_unique<RandomBatches>(seed);
  }

 private:
  Program forward_;
};

struct Outcome {
  std::vector<std::uint64_t> losses;               // their bits: a network may diverge to NaN
  std::vector<std::vector<std::byte>> persistent;  // weights, statistics, states
  Bytes peak_bytes = 0;                            // requested bytes
};

// Freed memory is overwritten, and writes outside a block are detected.
Outcome trained(const TrainingPlan& plan, const Workload& workload, const std::string& device_kind,
                int steps) {
  const auto device = Registry<DeviceKind>::instance()
                          .find(device_kind)
                          .create(Spec(device_kind, {{"capacity", "64MiB"}}));
  TraceRecorder recorder(0);
  for (const Program* program : plan.programs())
    for (const Op& op : program->ops) recorder.trace().op_names.push_back(op.name);
  const auto allocator = make_allocator(Spec::parse_composition("poison|malloc"), device->memory());
  RecordingAllocator recorded(*allocator, recorder);
  Outcome outcome;
  {
    const std::uint64_t seed = testing::test_seed();
    Trainer trainer(plan, *device, recorded, recorder,
                    device->computes() ? workload.open_data(seed) : nullptr, seed);
    for (int step = 1; step <= steps; ++step) {
      recorder.enter_step(step);
      outcome.losses.push_back(std::bit_cast<std::uint64_t>(trainer.step().loss));
    }
    if (device->computes())
      for (const Value* value : plan.persistent_values())
        outcome.persistent.push_back(trainer.read_persistent(*value));
  }
  outcome.peak_bytes = requests_of(recorder.trace()).peak_live_bytes;
  return outcome;
}

Cell random_cell(std::mt19937_64& random) {
  const auto one_of = [&](std::vector<const char*> choices) {
    return std::string(choices[random() % choices.size()]);
  };
  Cell cell;
  set_axis(cell, "checkpointing", one_of({"none", "none", "sqrt", "every(n=2)", "recursive"}));
  if (random() % 3 == 0) {
    set_axis(cell, "accumulation", "micro_batches(k=3)");
    set_axis(cell, "optimizer", one_of({"sgd", "adam(clip_norm=0.1)"}));
  } else {
    set_axis(cell, "optimizer",
             one_of({"sgd", "adam", "adam(clip_norm=0.1)", "sgd(step=in_backward)",
                     "sgd(gradients=zeroed)", "adam(loop=foreach)", "sgd(loop=fused)"}));
  }
  return cell;
}

TEST(Graph, leaves_every_weight_and_state_of_random_networks_the_same_bits) {
  std::mt19937_64 random(testing::test_seed());
  int reused = 0;
  int moved = 0;
  for (int round = 0; round < 12; ++round) {
    const OneNet workload(testing::BranchingNet(random).make());
    Cell cell = random_cell(random);
    const TrainingPlan plain = plan_training(workload, cell, "onednn");
    const Outcome wanted = trained(plain, workload, "host", 3);
    for (const std::string& graph : strategy().examples) {
      set_axis(cell, "execution", graph);
      SCOPED_TRACE(cell.id() + ", round " + std::to_string(round));
      const TrainingPlan plan = plan_training(workload, cell, "onednn");
      const Outcome found = trained(plan, workload, "host", 3);
      EXPECT_EQ(found.losses, wanted.losses);
      EXPECT_EQ(found.persistent, wanted.persistent);
      EXPECT_EQ(found.peak_bytes, peak_live_bytes(plan.programs()));
      EXPECT_EQ(found.peak_bytes, trained(plan, workload, "meta", 3).peak_bytes);
      if (graph == "graph") {
        EXPECT_LE(found.peak_bytes, wanted.peak_bytes);
      }
      if (order_of(plan.usual().programs[0]) != order_of(plain.usual().programs[0])) ++moved;
      if (reuses(plan.usual().programs[0])) ++reused;
    }
  }
  EXPECT_GT(reused, 12) << "hardly anything was reused";
  EXPECT_GT(moved, 12) << "hardly anything was moved";
}

Sample run(const std::string& workload, const std::string& execution, const std::string& device,
           const std::string& axis = "", const std::string& value = "") {
  Cell cell{.workload = Spec::parse(workload),
            .device = Spec::parse(device),
            .rules = "onednn",
            .allocator = Spec::parse("bfc(growth=on)"),
            .warmup_steps = 1,
            .measured_steps = 2};
  set_axis(cell, "execution", execution);
  if (!axis.empty()) set_axis(cell, axis, value);
  Sample sample = run_cell(cell, 5, "");
  EXPECT_EQ(sample.status, SampleStatus::ok)
      << workload << ", " << execution << ": " << sample.reason;
  return sample;
}

class EveryNetwork : public ::testing::TestWithParam<const char*> {
 protected:
  static std::string workload() { return std::string(GetParam()) + "(preset=tiny)"; }
};

TEST_P(EveryNetwork, trains_to_the_same_losses_and_takes_what_meta_says) {
  const Sample plain = run(workload(), "last_use", "host(capacity=1GiB)");
  for (const std::string& graph : strategy().examples) {
    SCOPED_TRACE(graph);
    const Sample host = run(workload(), graph, "host(capacity=1GiB)");
    EXPECT_EQ(host.loss, plain.loss);
    EXPECT_EQ(host.ledger.requested.overall_peak, host.lower_bound_bytes);
    const Sample meta = run(workload(), graph, "meta(capacity=1GiB)");
    EXPECT_EQ(meta.ledger.requested.overall_peak, host.ledger.requested.overall_peak);
  }
}

TEST_P(EveryNetwork, never_takes_more_in_place) {
  using Setting = std::pair<const char*, const char*>;
  for (const Setting& setting : {Setting{"precision", "fp32"}, Setting{"checkpointing", "sqrt"},
                                 Setting{"accumulation", "micro_batches(k=2)"},
                                 Setting{"optimizer", "sgd(gradients=zeroed)"}}) {
    const auto peak = [&](const char* execution) {
      return run(workload(), execution, "meta(capacity=1GiB)", setting.first, setting.second)
          .lower_bound_bytes;
    };
    EXPECT_LE(peak("graph"), peak("last_use")) << setting.first << "=" << setting.second;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, EveryNetwork, ::testing::Values("resnet", "bert", "gan", "gpt"),
                         [](const auto& info) { return std::string(info.param); });

// labels and x -> two branches of the same shape that meet; either may run first.
struct Branches {
  Program program{.name = "train"};
  ProgramBuilder build{program};
  ValueId x = build.input("x", {4, 6}, DType::f32);

  ValueId branch(const std::string& name) {
    const ValueId once = build.emit_one("relu", name + ".1", {x});
    return build.emit_one("tanh", name + ".2", {once});
  }
  Branches() {
    const ValueId left = branch("left"), right = branch("right");
    program.results = {build.emit_one("add", "sum", {left, right})};
    for (Value& value : program.values) value.bytes = 96;
  }
};

TEST(Graph, follows_a_branch_to_its_end_or_takes_turns) {
  const Program program = Branches().program;
  const auto order = [&](const char* spec) {
    return order_of(apply_pass<ExecutionStrategy>(program, Spec::parse(spec)));
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(order("graph(order=depth_first)"),
              ElementsAre("left.1", "left.2", "right.1", "right.2", "sum"));
  EXPECT_THAT(order("graph(order=breadth_first)"),
              ElementsAre("left.1", "right.1", "left.2", "right.2", "sum"));
}

TEST(Graph, runs_what_frees_memory_before_what_takes_it) {
  Branches branches;
  // Frees more than it allocates.
  branches.program.values[branches.program.find("left.2")].bytes = 8;
  branches.program.values[branches.program.find("left.1")].bytes = 90;
  std::rotate(branches.program.ops.begin(), branches.program.ops.begin() + 2,
              branches.program.ops.begin() + 4);  // the right branch runs first
  EXPECT_THAT(
      order_of(apply_pass<ExecutionStrategy>(branches.program, Spec::parse("graph(order=memory)"))),
      ::testing::ElementsAre("left.1", "left.2", "right.1", "right.2", "sum"));
}

TEST(Graph, reads_a_weight_before_it_changes_and_statistics_after) {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  const ValueId steps = build.persistent("steps", {1}, Role::optimizer_state, {});
  build.emit_one("relu", "before", {steps});
  build.emit("count_step", "count", {steps}, {}, {steps});
  build.emit_one("relu", "after", {steps});
  for (const char* order : {"depth_first", "breadth_first", "memory"})
    EXPECT_THAT(order_of(apply_pass<ExecutionStrategy>(
                    program, Spec("graph", {{"inplace", "off"}, {"order", order}}))),
                ::testing::ElementsAre("before", "count", "after"))
        << order;
}

// A recomputation could run as soon as its checkpoint exists, but early it would undo the saving.
TEST(Graph, computes_nothing_again_before_its_turn) {
  for (const char* order : {"depth_first", "breadth_first", "memory"}) {
    const std::string graph = std::string("graph(order=") + order + ")";
    const auto peak = [&](const char* checkpointing) {
      return run("gpt(preset=tiny,layers=12)", graph, "meta(capacity=1GiB)", "checkpointing",
                 checkpointing)
          .lower_bound_bytes;
    };
    EXPECT_LT(peak("sqrt"), peak("none")) << order;
  }
}

TEST(Graph, that_can_reuse_nothing_and_move_nothing_is_not_engaged) {
  Program chain{.name = "chain"};
  ProgramBuilder build(chain);
  const ValueId x = build.input("x", {4, 6}, DType::f32);
  const ValueId y = build.emit_one("relu", "y", {x});
  chain.results = {x, y};  // results are not overwritten
  const auto why = [&](const char* text) {
    const Spec spec = Spec::parse(text);
    return strategy().why_not_engaged(spec, chain, strategy().apply(chain, spec));
  };
  EXPECT_THAT(why("graph"), Optional(HasSubstr("no result could be written over an operand")));
  EXPECT_THAT(why("graph(inplace=off,order=memory)"),
              Optional(HasSubstr("where it ran in the order")));
  chain.results = {y};
  EXPECT_EQ(why("graph"), std::nullopt);
}

TEST(Graph, refuses_orders_that_do_not_exist_and_doing_nothing) {
  const auto apply = [](const char* spec) {
    return [spec] { apply_pass<ExecutionStrategy>(Program{}, Spec::parse(spec)); };
  };
  EXPECT_THAT(apply("graph(order=depth)"),
              ::testing::ThrowsMessage<InputError>(HasSubstr("take built, depth_first")));
  EXPECT_THAT(apply("graph(inplace=off)"),
              ::testing::ThrowsMessage<InputError>(HasSubstr("leaves the step unchanged")));
}

}  // namespace
}  // namespace headroom::graph_test
