#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "harness/base/error.h"
#include "harness/device/host/host_kernels.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/onednn/layout.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::onednn_lowering_test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::ThrowsMessage;

Program onednn(Program program, PersistentLayouts& layouts) {
  return lower(std::move(program), "onednn", layouts);
}

Program training(std::int64_t channels = 10, std::int64_t batch = 2) {
  return testing::with_sgd(differentiate(testing::tiny_residual_net(batch, channels)));
}

// The weights of tiny_residual_net in a second Program, as for evaluation.
Program evaluation(std::int64_t channels = 10) {
  Program program = testing::tiny_residual_net(5, channels);
  program.name = "evaluate";
  return program;
}

TEST(OneDnn, says_which_library_instructions_and_threads_its_sizes_are_for) {
  PersistentLayouts layouts;
  EXPECT_THAT(onednn(training(), layouts).rules,
              MatchesRegex("onednn\\([0-9.]+,[a-z0-9_]+,threads=[0-9]+,"
                           "workspace_limit=16777216\\)"));
}

TEST(OneDnn, gives_every_value_the_bytes_of_its_layout) {
  PersistentLayouts layouts;
  const Program program = onednn(training(), layouts);
  for (const Value& value : program.values) {
    EXPECT_EQ(value.bytes, onednn::layout_of(value).get_size()) << value.name;
    EXPECT_GE(value.bytes, static_cast<Bytes>(element_count(value.shape)) * size_of(value.dtype));
  }
}

TEST(OneDnn, keeps_inputs_and_results_in_row_major_order) {
  PersistentLayouts layouts;
  const Program program = onednn(training(), layouts);
  for (const ValueId id : program.inputs) EXPECT_EQ(program.value(id).layout, "");
  for (const ValueId id : program.results) EXPECT_EQ(program.value(id).layout, "");
}

// compile_for_host() queries the library again for each op with the planned layouts and throws when
// an operand or a workspace differs.
TEST(OneDnn, plans_operands_and_workspaces_that_the_kernels_take) {
  for (const std::int64_t channels : {3, 10, 16, 64, 100}) {
    PersistentLayouts layouts;
    EXPECT_NO_THROW(compile_for_host(onednn(training(channels), layouts))) << channels;
  }
}

TEST(OneDnn, reorders_only_between_different_layouts_and_once_per_phase) {
  PersistentLayouts layouts;
  const Program program = onednn(training(), layouts);
  std::set<std::tuple<ValueId, std::string, Phase>> copies;
  for (const Op& op : program.ops) {
    if (op.kind != "reorder") continue;
    EXPECT_NE(program.value(op.inputs[0]).layout, program.value(op.outputs[0]).layout) << op.name;
    EXPECT_TRUE(copies.emplace(op.inputs[0], program.value(op.outputs[0]).layout, op.phase).second)
        << op.name;
  }
  EXPECT_FALSE(copies.empty());  // otherwise this test proves nothing
}

TEST(OneDnn, adds_reorders_only_and_leaves_out_only_what_a_neighbour_computes) {
  PersistentLayouts layouts;
  const Program source = training();
  const Program program = onednn(source, layouts);
  validate(program);  // every value that is read is also made
  std::vector<std::string> kept;
  for (const Op& op : program.ops)
    if (op.kind != "reorder") kept.push_back(op.name);
  std::vector<std::string> wanted;
  const std::set<std::string> left_out = {"stem.relu",           "block.add",
                                          "block.relu",          "loss.backward",
                                          "block.relu.backward", "stem.relu.backward"};
  for (const Op& op : source.ops)
    if (!left_out.contains(op.name)) wanted.push_back(op.name);
  EXPECT_EQ(kept, wanted);
}

// Batch normalisation of row-major images needs scratch under every instruction set.
Program row_major_norms() {
  Program program{.name = "norms"};
  ProgramBuilder build(program);
  const auto x = build.input("x", {2, 10, 7, 5}, DType::f32);
  const auto c = build.persistent("c", {10}, Role::weight, {});
  for (const char* name : {"first", "second"})
    program.results.push_back(
        build.emit("batch_norm", name, {x, c, c}, {{"epsilon", 1e-5}}).front());
  return program;
}

TEST(OneDnn, gives_each_workspace_to_one_op_and_none_of_zero_bytes) {
  PersistentLayouts layouts;
  const Program program = onednn(row_major_norms(), layouts);
  std::set<ValueId> workspaces;
  for (const Op& op : program.ops) {
    if (op.workspace == kNoValue) continue;
    EXPECT_TRUE(workspaces.insert(op.workspace).second) << op.name;
    EXPECT_EQ(program.value(op.workspace).role, Role::workspace);
    EXPECT_GT(program.value(op.workspace).bytes, 0u) << op.name;
  }
  EXPECT_FALSE(workspaces.empty());
}

TEST(OneDnn, brings_gradient_and_velocity_to_the_layout_of_the_weight) {
  PersistentLayouts layouts;
  const Program program = onednn(training(), layouts);
  for (const Op& op : program.ops) {
    if (op.kind != "sgd_momentum") continue;
    for (const ValueId id : op.inputs)
      EXPECT_EQ(program.value(id).layout, program.value(op.inputs[0]).layout) << op.name;
    EXPECT_TRUE(program.value(op.inputs[0]).persistent) << op.name;
    EXPECT_TRUE(program.value(op.inputs[2]).persistent) << op.name;
  }
}

TEST(OneDnn, gives_the_gradient_of_a_pooled_image_the_layout_of_the_image) {
  PersistentLayouts layouts;
  const Program program = onednn(training(), layouts);
  const ValueId image = program.find("stem.relu");
  const ValueId gradient = program.find("pool.backward");
  EXPECT_NE(program.value(image).layout, "");  // otherwise this test proves nothing
  EXPECT_EQ(program.value(gradient).layout, program.value(image).layout);
}

TEST(OneDnn, leaves_persistent_values_as_the_first_program_laid_them_out) {
  for (const bool training_first : {true, false}) {
    PersistentLayouts layouts;
    const Program first = onednn(training_first ? training() : evaluation(), layouts);
    const Program second = onednn(training_first ? evaluation() : training(), layouts);
    for (const Value& value : second.values) {
      if (!value.persistent) continue;
      EXPECT_EQ(value.layout, layouts.at(value.name).layout) << value.name;
      const ValueId before = first.find(value.name);
      if (before == kNoValue) continue;
      EXPECT_EQ(value.layout, first.value(before).layout) << value.name;
      EXPECT_EQ(value.bytes, first.value(before).bytes) << value.name;
    }
    EXPECT_NO_THROW(compile_for_host(second));
  }
}

TEST(OneDnn, reorders_a_persistent_value_that_came_in_another_layout) {
  PersistentLayouts layouts;
  lower(evaluation(), "dense", layouts);  // all row-major
  const Program program = onednn(evaluation(), layouts);
  const ValueId weight = program.find("block.weight");
  EXPECT_EQ(program.value(weight).layout, "");
  EXPECT_NO_THROW(compile_for_host(program));
}

TEST(OneDnn, refuses_a_persistent_value_of_two_shapes) {
  PersistentLayouts layouts;
  onednn(training(10), layouts);
  EXPECT_THAT([&] { onednn(training(11), layouts); },
              ThrowsMessage<Error>(HasSubstr("in one Program and")));
}

TEST(OneDnn, plans_the_same_way_twice) {
  PersistentLayouts first_layouts, second_layouts;
  const Program first = onednn(training(), first_layouts);
  const Program second = onednn(training(), second_layouts);
  ASSERT_EQ(first.values.size(), second.values.size());
  for (ValueId id = 0; id < first.values.size(); ++id)
    EXPECT_EQ(first.value(id).bytes, second.value(id).bytes) << first.value(id).name;
}

TEST(OneDnn, plans_what_no_memory_could_hold) {
  PersistentLayouts layouts;
  const Program program = onednn(training(64, 1 << 26), layouts);
  EXPECT_GT(peak_live_bytes(program), Bytes{1} << 40);
}

}  // namespace
}  // namespace headroom::onednn_lowering_test
