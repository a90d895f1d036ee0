// Which neighbouring ops are fused, and that under the rules `onednn` fusion changes no bit of the
// results.
#include "harness/program/lowering/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/program/in_place.h"
#include "harness/program/lowering/lowering.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::fusion_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Op* named(const Program& program, const std::string& name) {
  for (const Op& op : program.ops)
    if (op.name == name) return &op;
  return nullptr;
}

Program lowered(Program program) {
  PersistentLayouts layouts;
  return lower(std::move(program), "onednn", layouts);
}

TEST(Fusion, computes_a_batch_normalisation_with_the_relu_behind_it) {
  const Program program = lowered(differentiate(testing::tiny_residual_net()));
  EXPECT_EQ(named(program, "stem.norm")->kind, "batch_norm_relu");
  EXPECT_EQ(named(program, "stem.norm")->outputs[0], program.find("stem.relu"));
  EXPECT_EQ(named(program, "stem.norm.backward")->kind, "batch_norm_relu_backward");
  EXPECT_EQ(named(program, "stem.relu"), nullptr);
  EXPECT_EQ(named(program, "stem.relu.backward"), nullptr);
}

TEST(Fusion, computes_the_sum_of_a_residual_block_between_them) {
  const Program program = lowered(differentiate(testing::tiny_residual_net()));
  const Op& forward = *named(program, "block.norm");
  EXPECT_EQ(forward.kind, "batch_norm_add_relu");
  EXPECT_EQ(forward.outputs[0], program.find("block.relu"));
  EXPECT_EQ(forward.inputs[3], program.find("pool"));
  const Op& backward = *named(program, "block.norm.backward");
  EXPECT_EQ(backward.kind, "batch_norm_add_relu_backward");
  EXPECT_EQ(backward.outputs[3], program.find("block.relu.backward"));
  EXPECT_EQ(named(program, "block.add"), nullptr);
}

TEST(Fusion, writes_the_gradient_of_the_sum_over_the_one_it_is_made_from) {
  const Program program = lowered(differentiate(testing::tiny_residual_net()));
  EXPECT_EQ(in_place(*named(program, "block.norm.backward")), (InPlace{.output = 3, .input = 1}));
}

TEST(Fusion, needs_no_output_of_relu_for_its_gradient) {
  const Program program = lowered(differentiate(testing::tiny_residual_net()));
  for (const Op& op : program.ops)
    if (op.phase == Phase::backward) {
      EXPECT_THAT(op.inputs, ::testing::Not(::testing::Contains(program.find("stem.relu"))))
          << op.name;
    }
}

// x -> norm -> relu, and any other readers of the normalisation's output.
struct Chain {
  Program program{.name = "chain"};
  ProgramBuilder build{program};
  ValueId x = build.input("x", {2, 8, 3, 3}, DType::f32);
  ValueId c = build.persistent("c", {8}, Role::weight, {});
  ValueId y = norm("norm", x);

  ValueId norm(const std::string& name, ValueId of) {
    return build.emit("batch_norm", name, {of, c, c}, {{"epsilon", 1e-5}})[0];
  }
  ValueId relu(ValueId of) { return build.emit_one("relu", "relu", {of}); }
};

TEST(Fusion, names_the_ops_that_it_takes_the_place_of) {
  Chain chain;
  chain.program.results = {chain.relu(chain.y)};
  const auto found = fusions(chain.program);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found.at(0).others, ElementsAre(1U));
}

TEST(Fusion, leaves_alone_what_the_host_or_another_op_reads) {
  Chain of_host;
  of_host.program.results = {of_host.relu(of_host.y), of_host.y};
  EXPECT_THAT(fusions(of_host.program), IsEmpty());
  Chain of_op;
  of_op.program.results = {of_op.relu(of_op.y), of_op.norm("another", of_op.y)};
  EXPECT_THAT(fusions(of_op.program), IsEmpty());
}

TEST(Fusion, leaves_alone_a_value_added_to_itself) {
  Chain chain;
  chain.program.results = {chain.relu(chain.build.emit_one("add", "twice", {chain.y, chain.y}))};
  EXPECT_THAT(fusions(chain.program), IsEmpty());
}

TEST(Fusion, adds_only_what_is_there_already) {
  for (const bool last_first : {true, false}) {
    Chain chain;
    const ValueId last = chain.norm("last", chain.x);
    const ValueId first = last_first ? last : chain.y;
    const ValueId second = last_first ? chain.y : last;
    chain.program.results = {chain.relu(chain.build.emit_one("add", "sum", {first, second}))};
    const auto found = fusions(chain.program);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.begin()->second.op.name, "last");
    EXPECT_EQ(found.begin()->second.op.inputs[3], chain.y);
  }
}

TEST(Fusion, takes_place_only_where_there_is_a_kernel) {
  const Program step = differentiate(testing::tiny_residual_net());
  const Program fused = fuse(step, [](const Op& op) { return op.kind == "batch_norm_relu"; });
  EXPECT_EQ(named(fused, "stem.norm")->kind, "batch_norm_relu");
  EXPECT_EQ(named(fused, "stem.relu"), nullptr);
  EXPECT_EQ(named(fused, "block.norm")->kind, "batch_norm");
  EXPECT_EQ(named(fused, "stem.norm.backward")->kind, "batch_norm_backward");
  EXPECT_EQ(fused.ops.size() + 1, step.ops.size());
}

// Two ops read a relu, behind a sum or directly behind a batch normalisation.
Program read_twice(bool behind_sum) {
  Chain chain;
  ValueId y = chain.y;
  if (behind_sum) y = chain.build.emit_one("add", "first", {y, chain.x});
  y = chain.relu(y);
  y = chain.build.emit_one("add", "second", {chain.norm("next", y), y});
  y = chain.build.emit_one("global_average_pool", "mean", {y});
  const ValueId labels = chain.build.input("labels", {2}, DType::s32);
  chain.program.loss = chain.build.emit("softmax_cross_entropy", "loss", {y, labels})[0];
  chain.program.results = {chain.program.loss};
  return differentiate(std::move(chain.program));
}

TEST(Fusion, adds_the_gradients_of_both_readers_of_a_relu_behind_a_sum) {
  const Program step = read_twice(true);
  const Program fused = fuse(step, [](const Op&) { return true; });
  const Op& op = *named(fused, "relu.backward");
  EXPECT_EQ(op.kind, "relu_backward");
  ASSERT_EQ(op.inputs.size(), 3U);
  EXPECT_EQ(op.inputs[0], step.find("relu"));
  const Op& sum = *std::find_if(step.ops.begin(), step.ops.end(), [](const Op& one) {
    return one.kind == "add" && one.phase == Phase::backward;
  });
  EXPECT_THAT(sum.inputs, ElementsAre(op.inputs[1], op.inputs[2]));
  EXPECT_EQ(named(fused, sum.name), nullptr);
  EXPECT_EQ(named(lowered(step), "relu.backward")->inputs.size(), 2U);  // the host has no kernel
}

TEST(Fusion, leaves_a_sum_of_gradients_where_a_batch_normalisation_computes_the_relu) {
  const Program step = read_twice(false);
  const Program fused = fuse(step, [](const Op&) { return true; });
  EXPECT_EQ(named(fused, "norm.backward")->kind, "batch_norm_relu_backward");
  EXPECT_EQ(named(fused, "relu.backward"), nullptr);
  const auto sums = [](const Program& program) {
    return std::count_if(program.ops.begin(), program.ops.end(), [](const Op& one) {
      return one.kind == "add" && one.phase == Phase::backward;
    });
  };
  EXPECT_EQ(sums(fused), sums(step));
}

TEST(Fusion, leaves_a_layout_without_groups_of_channels_to_the_library) {
  Chain chain;  // x comes in row-major order
  chain.program.results = {chain.relu(chain.y)};
  EXPECT_EQ(lowered(chain.program).ops[0].kind, "batch_norm");
}

TEST(Fusion, computes_a_loss_with_its_gradient) {
  const Program step = differentiate(testing::tiny_residual_net());
  const Program program = lowered(step);
  EXPECT_EQ(named(program, "loss")->kind, "softmax_cross_entropy_and_gradient");
  EXPECT_EQ(named(program, "loss")->outputs[1], step.find("loss.backward"));
  EXPECT_EQ(named(program, "loss.backward"), nullptr);
}

// A table that is both looked up and used by the last layer, as in BERT.
TEST(Fusion, adds_rows_to_the_gradient_that_a_tied_layer_has_left) {
  Program program{.name = "tied"};
  ProgramBuilder build(program);
  const ValueId table = build.persistent("table", {40, 6}, Role::weight, {Fill::normal, 1});
  const ValueId bias = build.persistent("bias", {40}, Role::weight, {});
  const ValueId rows = build.input("rows", {9}, DType::s32);
  const ValueId labels = build.input("labels", {9}, DType::s32);
  const ValueId x = build.emit_one("gather_rows", "look_up", {table, rows});
  const ValueId y = build.emit_one("linear", "head", {x, table, bias});
  program.loss = build.emit("softmax_cross_entropy", "loss", {y, labels})[0];
  program.results = {program.loss};
  const Program step = differentiate(program);
  const Program found = lowered(step);
  const Op& op = *named(found, "look_up.backward");
  EXPECT_EQ(op.kind, "gather_rows_backward_add");
  EXPECT_EQ(op.outputs[0], step.gradients[0].second);
  EXPECT_EQ(in_place(op), (InPlace{.output = 0, .input = 2}));
  EXPECT_EQ(named(found, "table.sum_gradients"), nullptr);
  testing::judge_on_host(step, 40);
}

// Prevents fusion: the host reads the values in between, and an op separates a gradient's readers.
Program kept_apart(Program program) {
  for (const char* between : {"stem.norm", "block.norm", "loss:1"})
    program.results.push_back(program.find(between));
  ProgramBuilder build(program, Phase::backward);
  build.emit_one("relu", "between", {program.find("block.relu.backward")});
  const auto after = std::find_if(program.ops.begin(), program.ops.end(),
                                  [](const Op& op) { return op.name == "block.norm.backward"; });
  std::rotate(after, program.ops.end() - 1, program.ops.end());
  return program;
}

TEST(Fusion, changes_no_bit_of_any_gradient) {
  std::mt19937_64 random(testing::test_seed());
  for (const std::int64_t channels : {10, 16}) {
    const Program plain = differentiate(testing::tiny_residual_net(3, channels, 21, 23));
    testing::HostExecution fused(lowered(plain)), unfused(lowered(kept_apart(plain)));
    for (const char* name : {"stem.relu", "block.add", "block.relu", "loss.backward",
                             "block.relu.backward", "stem.relu.backward"}) {
      ASSERT_EQ(named(fused.program(), name), nullptr) << name;
      ASSERT_NE(named(unfused.program(), name), nullptr) << name;
    }
    testing::Tensors tensors(plain);
    testing::fill_randomly(plain, tensors, random, 4);
    for (testing::HostExecution* run : {&fused, &unfused}) {
      for (ValueId id = 0; id < plain.values.size(); ++id)
        if (!tensors[id].empty()) run->write(id, tensors[id]);
      run->run();
    }
    for (const auto& [weight, gradient] : plain.gradients)
      EXPECT_EQ(fused.read(gradient), unfused.read(gradient)) << plain.value(weight).name;
  }
}

}  // namespace
}  // namespace headroom::fusion_test
