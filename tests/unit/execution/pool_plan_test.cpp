// Offsets fixed before a Program runs: steps of random networks are checked byte by byte by the
// last writer of each byte.
#include "harness/execution/pool_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/memory/allocator.h"
#include "harness/plan/axes.h"
#include "harness/program/in_place.h"
#include "harness/program/offload.h"
#include "harness/program/pass.h"
#include "harness/training/training_plan.h"
#include "tests/unit/reference/reference.h"
#include "tests/unit/support/random_net.h"

namespace headroom::pool_plan_test {
namespace {

// Last writer of each unit of 256 bytes. Knows nothing of lifetimes.
class Memory {
 public:
  Memory(const Program& program, const PoolPlan& plan)
      : program_(program),
        plan_(plan),
        on_host_(kept_on_host(program)),
        device_(units(plan.device), kNoValue),
        host_(units(plan.host), kNoValue) {}

  void write(ValueId id) {
    for_units(id, [&](ValueId& owner) { owner = id; });
  }
  bool holds(ValueId id) {
    bool whole = true;
    for_units(id, [&](const ValueId& owner) { whole &= owner == id; });
    return whole;
  }

 private:
  static std::size_t units(Bytes bytes) {
    return static_cast<std::size_t>((bytes + kBlockAlignment - 1) / kBlockAlignment);
  }
  template <typename Do>
  void for_units(ValueId id, const Do& with) {
    if (id == kNoValue || program_.value(id).persistent) return;
    std::vector<ValueId>& memory = on_host_[id] ? host_ : device_;
    const std::size_t first = units(plan_.offsets[id]);
    for (std::size_t i = 0; i < units(program_.value(id).bytes); ++i) with(memory.at(first + i));
  }

  const Program& program_;
  const PoolPlan& plan_;
  std::vector<bool> on_host_;
  std::vector<ValueId> device_, host_;
};

void expect_every_operand_in_its_place(const Program& program) {
  const PoolPlan plan = plan_pool(program);
  ASSERT_EQ(plan.offsets.size(), program.values.size());
  for (const Bytes offset : plan.offsets) ASSERT_EQ(offset % kBlockAlignment, 0U);
  Memory memory(program, plan);
  for (const ValueId id : program.inputs) memory.write(id);
  for (const ValueId id : program.inputs) ASSERT_TRUE(memory.holds(id)) << program.value(id).name;
  for (const Op& op : program.ops) {
    SCOPED_TRACE(op.name);
    for (const ValueId id : op.inputs) ASSERT_TRUE(memory.holds(id)) << "lost before it was read";
    const auto places = in_place(op);
    for (const ValueId id : op.outputs) memory.write(id);
    memory.write(op.workspace);
    for (const ValueId id : op.outputs) ASSERT_TRUE(memory.holds(id)) << "lies under another";
    ASSERT_TRUE(memory.holds(op.workspace));
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (!places || op.inputs[places->input] != op.inputs[i]) {
        ASSERT_TRUE(memory.holds(op.inputs[i])) << "overwritten while it is read";
      }
  }
  for (const ValueId id : program.results) ASSERT_TRUE(memory.holds(id)) << "lost before the end";
}

std::string any_checkpointing(std::mt19937_64& random) {
  std::vector<std::string> examples = {"none"};
  for (const auto& [name, strategy] : Registry<CheckpointingStrategy>::instance().all())
    examples.insert(examples.end(), strategy.examples.begin(), strategy.examples.end());
  return examples[random() % examples.size()];
}

TEST(PoolPlan, keeps_every_operand_in_its_place_until_it_was_read_for_the_last_time) {
  std::mt19937_64 random(testing::test_seed());
  int judged = 0;
  for (int draw = 0; judged < 40; ++draw) {
    ASSERT_LT(draw, 400) << "nearly everything is refused";
    const testing::RandomNet net(random(), 4, {.across_samples = true, .ignored_labels = true});
    Cell cell;
    set_axis(cell, "optimizer", random() % 2 == 0 ? "adam" : "sgd(step=in_backward)");
    set_axis(cell, "checkpointing", any_checkpointing(random));
    set_axis(cell, "execution", random() % 2 == 0 ? "last_use" : "graph(order=memory)");
    const char* rules = random() % 2 == 0 ? "dense" : "onednn";
    SCOPED_TRACE(cell.id() + rules);
    try {
      const TrainingPlan plan = plan_training(net, cell, rules);
      expect_every_operand_in_its_place(plan.usual().programs.front());
    } catch (const NotSupported&) {
      continue;
    }
    ++judged;
    if (::testing::Test::HasFailure()) return;
  }
}

// x → a → b → c: a is dead when c is computed.
TEST(PoolPlan, lets_values_share_bytes_that_never_live_at_the_same_time) {
  Program program;
  program.name = "chain";
  ProgramBuilder builder(program);
  const ValueId x = builder.input("x", {64}, DType::f32);
  const ValueId a = builder.emit_one("relu", "a", {x}), b = builder.emit_one("relu", "b", {a});
  const ValueId c = builder.emit_one("relu", "c", {b});
  program.results = {c};
  for (Value& value : program.values) value.bytes = 256;
  const PoolPlan plan = plan_pool(program);
  EXPECT_EQ(plan.device, 512U);
  EXPECT_EQ(plan.offsets[c], plan.offsets[a]);
  EXPECT_NE(plan.offsets[b], plan.offsets[a]);
  EXPECT_EQ(plan.host, 0U);
}

TEST(PoolPlan, lays_a_result_where_the_operand_lies_that_it_is_written_over) {
  Program program;
  program.name = "chain";
  ProgramBuilder builder(program);
  const ValueId x = builder.input("x", {64}, DType::f32);
  const ValueId a = builder.emit_one("relu", "a", {x});
  program.results = {a};
  for (Value& value : program.values) value.bytes = 256;
  put_in_place(program.ops[0], {.output = 0, .input = 0});
  const PoolPlan plan = plan_pool(program);
  EXPECT_EQ(plan.device, 256U);
  EXPECT_EQ(plan.offsets[a], plan.offsets[x]);
}

}  // namespace
}  // namespace headroom::pool_plan_test
