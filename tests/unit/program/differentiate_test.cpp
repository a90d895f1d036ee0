#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/program/program.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::differentiate_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

std::vector<std::string> op_names(const Program& program) {
  std::vector<std::string> names;
  for (const Op& op : program.ops) names.push_back(op.name);
  return names;
}

const Op& op_named(const Program& program, const std::string& name) {
  const auto found = std::find_if(program.ops.begin(), program.ops.end(),
                                  [&](const Op& op) { return op.name == name; });
  if (found == program.ops.end()) throw Error("no op " + name);
  return *found;
}

TEST(Differentiate, gives_every_weight_a_gradient_of_its_shape_in_declared_order) {
  const Program program = differentiate(testing::tiny_residual_net());
  std::vector<ValueId> weights;
  for (ValueId id = 0; id < program.values.size(); ++id)
    if (program.value(id).role == Role::weight) weights.push_back(id);
  ASSERT_EQ(program.gradients.size(), weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto [weight, gradient] = program.gradients[i];
    EXPECT_EQ(weight, weights[i]);
    EXPECT_EQ(program.value(gradient).shape, program.value(weight).shape);
    EXPECT_EQ(program.value(gradient).role, Role::gradient);
  }
}

TEST(Differentiate, computes_no_gradient_of_the_images) {
  const auto names = op_names(differentiate(testing::tiny_residual_net()));
  EXPECT_THAT(names, ::testing::Contains("stem.backward_weights"));
  EXPECT_THAT(names, ::testing::Contains("block.conv.backward_data"));
  EXPECT_THAT(names, Each(Not("stem.backward_data")));
}

TEST(Differentiate, sums_the_gradients_of_a_value_used_twice) {
  const Program program = differentiate(testing::tiny_residual_net());
  const Op sum = op_named(program, "pool.sum_gradients");
  EXPECT_EQ(sum.kind, "add");
  EXPECT_EQ(program.value(sum.outputs[0]).role, Role::activation_gradient);
  EXPECT_EQ(op_named(program, "pool.backward").inputs[0], sum.outputs[0]);
}

TEST(Differentiate, passes_the_gradient_of_a_sum_to_both_sides_without_an_op) {
  const Program program = differentiate(testing::tiny_residual_net());
  const ValueId through = op_named(program, "block.relu.backward").outputs[0];
  EXPECT_EQ(op_named(program, "block.norm.backward").inputs[1], through);
  EXPECT_THAT(op_named(program, "pool.sum_gradients").inputs, ::testing::Contains(through));
}

TEST(Differentiate, keeps_the_forward_ops_and_appends_in_the_backward_phase) {
  const Program forward = testing::tiny_residual_net();
  const Program program = differentiate(forward);
  ASSERT_GT(program.ops.size(), forward.ops.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const bool is_forward = i < forward.ops.size();
    EXPECT_EQ(program.ops[i].phase, is_forward ? Phase::forward : Phase::backward);
    EXPECT_TRUE(!is_forward || program.ops[i].name == forward.ops[i].name);
  }
}

TEST(Differentiate, leaves_out_a_frozen_part_of_the_network) {
  Program forward = testing::tiny_residual_net();
  for (Value& value : forward.values)
    if (value.role == Role::weight && !value.name.starts_with("head")) value.role = Role::statistic;
  const Program program = differentiate(forward);
  EXPECT_EQ(program.gradients.size(), 2u);
  EXPECT_EQ(program.ops.size(), forward.ops.size() + 2);  // the loss and the head's weights
}

TEST(Differentiate, sums_three_uses_of_one_weight) {
  Program program{.name = "shared"};
  ProgramBuilder build(program);
  auto x = build.input("x", {2, 3}, DType::f32);
  const auto labels = build.input("labels", {2}, DType::s32);
  const auto w = build.persistent("w", {3, 3}, Role::weight, {});
  const auto b = build.persistent("b", {3}, Role::weight, {});
  for (const char* name : {"first", "second", "third"})
    x = build.emit_one("linear", name, {x, w, b});
  program.loss = build.emit("softmax_cross_entropy", "loss", {x, labels}).front();
  const Program trained = differentiate(program);
  EXPECT_EQ(trained.value(trained.gradients[0].second).name, "w.sum_gradients.2");
  EXPECT_EQ(trained.value(trained.gradients[0].second).role, Role::gradient);
}

TEST(Differentiate, refuses_a_program_without_a_loss) {
  Program program = testing::tiny_residual_net();
  program.loss = kNoValue;
  EXPECT_THAT([&] { differentiate(program); }, ThrowsMessage<Error>(HasSubstr("has no loss")));
}

TEST(Differentiate, refuses_a_loss_no_rule_can_start_from) {
  Program program = testing::tiny_residual_net();
  program.loss = program.find("average");
  EXPECT_THAT([&] { differentiate(program); },
              ThrowsMessage<Error>(AllOf(HasSubstr("average (global_average_pool)"),
                                         HasSubstr("cannot start from the loss"))));
}

TEST(Differentiate, names_the_op_that_has_no_backward_rule) {
  Program program{.name = "inference"};
  ProgramBuilder build(program);
  const auto x = build.input("x", {2, 3, 4, 4}, DType::f32);
  const auto labels = build.input("labels", {2}, DType::s32);
  const auto w = build.persistent("w", {3, 3, 1, 1}, Role::weight, {});
  const auto c = build.persistent("c", {3}, Role::statistic, {});
  auto y = build.emit_one("convolution", "conv", {x, w},
                          {{"strides", Shape{1, 1}}, {"padding", Shape{0, 0, 0, 0}}});
  y = build.emit_one("batch_norm_inference", "norm", {y, c, c, c, c}, {{"epsilon", 1e-5}});
  y = build.emit_one("global_average_pool", "average", {y});
  program.loss = build.emit("softmax_cross_entropy", "loss", {y, labels}).front();
  EXPECT_THAT([&] { differentiate(program); },
              ThrowsMessage<Error>(HasSubstr("norm (batch_norm_inference)")));
}

}  // namespace
}  // namespace headroom::differentiate_test
