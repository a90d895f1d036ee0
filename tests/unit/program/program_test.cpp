#include "harness/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/error.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::program_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Attributes kUnitStride = {{"strides", Shape{1, 1}}, {"padding", Shape{0, 0, 0, 0}}};

struct Building {
  Program program{.name = "test"};
  ProgramBuilder build{program};
};

TEST(ProgramBuilder, infers_the_shape_of_a_strided_padded_convolution) {
  Building b;
  const auto x = b.build.input("x", {2, 3, 11, 8}, DType::f32);
  const auto w = b.build.persistent("w", {5, 3, 3, 2}, Role::weight, {});
  const auto y = b.build.emit_one("convolution", "conv", {x, w},
                                  {{"strides", Shape{2, 3}}, {"padding", Shape{1, 0, 2, 1}}});
  EXPECT_EQ(b.program.value(y).shape, (Shape{2, 5, 6, 3}));
  EXPECT_EQ(b.program.value(y).role, Role::activation);
}

TEST(ProgramBuilder, names_further_outputs_by_number) {
  Building b;
  const auto x = b.build.input("x", {2, 3, 4, 4}, DType::f32);
  const auto c = b.build.persistent("c", {3}, Role::weight, {});
  b.build.emit("batch_norm", "norm", {x, c, c}, {{"epsilon", 1e-5}});
  EXPECT_NE(b.program.find("norm"), kNoValue);
  EXPECT_NE(b.program.find("norm:2"), kNoValue);
  EXPECT_EQ(b.program.find("norm:3"), kNoValue);
}

TEST(ProgramBuilder, names_the_op_whose_operands_do_not_fit) {
  Building b;
  const auto x = b.build.input("x", {2, 3, 8, 8}, DType::f32);
  const auto w = b.build.persistent("w", {5, 4, 3, 3}, Role::weight, {});
  EXPECT_THAT(
      [&] {
        b.build.emit_one("convolution", "layer1.conv", {x, w}, kUnitStride);
      },
      ThrowsMessage<Error>(
          AllOf(HasSubstr("layer1.conv (convolution)"), HasSubstr("3 channels, but w takes 4"))));
}

TEST(ProgramBuilder, names_the_op_whose_attribute_is_missing) {
  Building b;
  const auto x = b.build.input("x", {2, 3, 8, 8}, DType::f32);
  EXPECT_THAT(
      [&] { b.build.emit("max_pool", "pool", {x}); },
      ThrowsMessage<Error>(AllOf(HasSubstr("pool (max_pool)"), HasSubstr("'kernel' is missing"))));
}

TEST(ProgramBuilder, refuses_a_kernel_larger_than_the_padded_image) {
  Building b;
  const auto x = b.build.input("x", {1, 3, 2, 2}, DType::f32);
  const auto w = b.build.persistent("w", {5, 3, 3, 3}, Role::weight, {});
  EXPECT_THAT(
      [&] {
        b.build.emit_one("convolution", "conv", {x, w}, kUnitStride);
      },
      ThrowsMessage<Error>(HasSubstr("3x3 does not fit into the padded image 2x2")));
}

TEST(ProgramBuilder, refuses_an_update_that_does_not_state_what_it_mutates) {
  Building b;
  const auto w = b.build.persistent("w", {5}, Role::weight, {});
  const Attributes rates = {{"learning_rate", 0.1}, {"momentum", 0.9}, {"weight_decay", 0.0}};
  EXPECT_THAT(
      [&] {
        b.build.emit("sgd_momentum", "update", {w, w, w}, rates);
      },
      ThrowsMessage<Error>(HasSubstr("update (sgd_momentum): mutates")));
}

TEST(ProgramBuilder, offers_the_nearest_kind_for_an_unknown_one) {
  Building b;
  const auto x = b.build.input("x", {1}, DType::f32);
  EXPECT_THAT(
      [&] { b.build.emit("rleu", "act", {x}); },
      ThrowsMessage<Error>(AllOf(HasSubstr("act (rleu)"), HasSubstr("did you mean 'relu'?"))));
}

TEST(Program, counts_the_flops_of_convolutions_and_products_both_ways) {
  Building b;
  const auto x = b.build.input("x", {2, 3, 4, 4}, DType::f32);
  const auto labels = b.build.input("labels", {2}, DType::s32);
  const auto w = b.build.persistent("w", {5, 3, 3, 3}, Role::weight, {});
  const auto v = b.build.persistent("v", {7, 5}, Role::weight, {});
  const auto bias = b.build.persistent("b", {7}, Role::weight, {});
  auto y = b.build.emit_one("convolution", "conv", {x, w}, kUnitStride);
  y = b.build.emit_one("global_average_pool", "average", {y});
  y = b.build.emit_one("linear", "head", {y, v, bias});
  b.program.loss = b.build.emit("softmax_cross_entropy", "loss", {y, labels}).front();
  const double convolution = 2.0 * (2 * 5 * 2 * 2) * (3 * 3 * 3);
  const double linear = 2.0 * 2 * 5 * 7;
  EXPECT_DOUBLE_EQ(total_flops(b.program), convolution + linear);
  // The image needs no gradient, so the convolution has one backward pass and the linear layer two.
  EXPECT_DOUBLE_EQ(total_flops(differentiate(b.program)), 2 * convolution + 3 * linear);
}

TEST(Validate, accepts_a_differentiated_network_with_updates) {
  EXPECT_NO_THROW(validate(testing::with_sgd(differentiate(testing::tiny_residual_net()))));
}

TEST(Validate, refuses_a_use_before_the_production) {
  Program program = testing::tiny_residual_net();
  std::swap(program.ops[0], program.ops[1]);
  EXPECT_THAT([&] { validate(program); },
              ThrowsMessage<Error>(AllOf(HasSubstr("stem.norm"), HasSubstr("no contents yet"))));
}

TEST(Validate, refuses_a_value_produced_twice) {
  Program program = testing::tiny_residual_net();
  program.ops.insert(program.ops.begin(), program.ops[0]);
  EXPECT_THAT([&] { validate(program); }, ThrowsMessage<Error>(HasSubstr("produced twice")));
}

TEST(Validate, refuses_an_id_out_of_range) {
  Program program = testing::tiny_residual_net();
  program.results.push_back(static_cast<ValueId>(program.values.size()));
  EXPECT_THAT([&] { validate(program); }, ThrowsMessage<Error>(HasSubstr("does not exist")));
}

TEST(Validate, refuses_two_persistent_values_of_one_name) {
  Program program = testing::tiny_residual_net();
  program.values[program.find("head.bias")].name = "head.weight";
  EXPECT_THAT([&] { validate(program); },
              ThrowsMessage<Error>(HasSubstr("two persistent values are called 'head.weight'")));
}

TEST(Validate, refuses_to_mutate_what_is_not_an_input) {
  Program program = testing::tiny_residual_net();
  program.ops[0].mutates = {program.find("head.bias")};
  EXPECT_THAT([&] { validate(program); }, ThrowsMessage<Error>(HasSubstr("stem: mutates")));
}

}  // namespace
}  // namespace headroom::program_test
