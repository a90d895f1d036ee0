// Backward rules against central finite differences, in double on the naive reference. Neither the
// rule nor the reference is trusted: both must agree with the definition of a derivative.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "harness/base/registry.h"
#include "tests/unit/reference/reference.h"
#include "tests/unit/support/finite_differences.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::backward_rules_test {
namespace {

using testing::Tensor;
using testing::Tensors;

constexpr double kTolerance = 1e-4;

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Tensor finite_differences(Tensor& tensor, const std::vector<std::size_t>& elements,
                          const std::function<double()>& scalar) {
  return testing::finite_differences(tensor, elements, 1e-6, kTolerance, scalar);
}

void expect_slopes(const Tensor& found, const std::vector<std::size_t>& elements,
                   const Tensor& slopes, const std::string& what) {
  std::size_t kinks = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (std::isnan(slopes[i])) {
      ++kinks;
      continue;
    }
    ASSERT_NEAR(found[elements[i]], slopes[i], kTolerance * (1 + std::abs(slopes[i])))
        << what << " at " << elements[i];
  }
  EXPECT_LE(2 * kinks, elements.size()) << what;
}

// Draws at most `limit` elements without repetition.
std::vector<std::size_t> some_elements(std::size_t size, std::size_t limit,
                                       std::mt19937_64& random) {
  std::vector<std::size_t> elements(size);
  std::iota(elements.begin(), elements.end(), std::size_t{0});
  std::shuffle(elements.begin(), elements.end(), random);
  elements.resize(std::min(size, limit));
  return elements;
}

// One op whose operands are all weights, so that each needs a gradient. The scalar is <y, r> for a
// random r, which takes the place of the incoming gradient.
struct SingleOp {
  Program program{.name = "single"};
  ProgramBuilder build{program};

  ValueId weight(const std::string& name, Shape shape) {
    return build.persistent(name, std::move(shape), Role::weight, {});
  }

  void expect_the_rule_to_match(const std::string& kind, const std::vector<ValueId>& operands,
                                const Attributes& attributes = {}) {
    std::mt19937_64 random(testing::test_seed());
    build.emit(kind, kind, operands, attributes);
    const Op op = program.ops[0];
    const ValueId from_above = build.input("r", program.value(op.outputs[0]).shape, DType::f32);
    GradientContext context{build, op, std::vector<ValueId>(op.outputs.size(), kNoValue),
                            std::vector<bool>(op.inputs.size(), true)};
    context.d_outputs[0] = from_above;
    const auto gradients = Registry<OpDefinition>::instance().find(kind).differentiate(context);

    Tensors tensors(program);
    testing::fill_randomly(program, tensors, random, 3);
    testing::execute_reference(program, tensors);
    ASSERT_EQ(gradients.size(), operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (program.value(operands[i]).dtype != DType::f32) {
        EXPECT_EQ(gradients[i], kNoValue) << "nothing flows into whole numbers";
        continue;
      }
      ASSERT_NE(gradients[i], kNoValue);
      const auto elements = some_elements(tensors[operands[i]].size(), 1000, random);
      const Tensor slopes = finite_differences(tensors[operands[i]], elements, [&] {
        testing::execute_reference(program, op, tensors);
        return dot(tensors[op.outputs[0]], tensors[from_above]);
      });
      expect_slopes(tensors[gradients[i]], elements, slopes,
                    kind + " operand " + std::to_string(i));
    }
  }
};

TEST(BackwardRule, of_a_strided_unevenly_padded_convolution_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("convolution",
                              {op.weight("x", {2, 3, 6, 5}), op.weight("w", {4, 3, 3, 2})},
                              {{"strides", Shape{2, 1}}, {"padding", Shape{1, 0, 2, 1}}});
}

TEST(BackwardRule, of_a_strided_unevenly_padded_transposed_convolution_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("transposed_convolution",
                              {op.weight("x", {2, 4, 3, 5}), op.weight("w", {4, 3, 3, 2})},
                              {{"strides", Shape{2, 1}}, {"padding", Shape{1, 0, 0, 1}}});
}

TEST(BackwardRule, of_batch_norm_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match(
      "batch_norm",
      {op.weight("x", {3, 4, 2, 3}), op.weight("scale", {4}), op.weight("shift", {4})},
      {{"epsilon", 1e-2}});
}

TEST(BackwardRule, of_relu_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("relu", {op.weight("x", {2, 3, 5})});
}

TEST(BackwardRule, of_add_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("add", {op.weight("a", {2, 3}), op.weight("b", {2, 3})});
}

TEST(BackwardRule, of_overlapping_max_pool_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match(
      "max_pool", {op.weight("x", {2, 3, 7, 5})},
      {{"kernel", Shape{3, 2}}, {"strides", Shape{2, 1}}, {"padding", Shape{1, 0, 1, 1}}});
}

TEST(BackwardRule, of_global_average_pool_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("global_average_pool", {op.weight("x", {2, 3, 5, 4})});
}

TEST(BackwardRule, of_upsample_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("upsample", {op.weight("x", {2, 3, 3, 2})},
                              {{"factor", std::int64_t{3}}, {"scale", 0.7}});
}

TEST(BackwardRule, of_sum_pool_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("sum_pool", {op.weight("x", {2, 3, 4, 6})},
                              {{"factor", std::int64_t{2}}, {"scale", 0.25}});
}

TEST(BackwardRule, of_linear_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match(
      "linear", {op.weight("x", {3, 5}), op.weight("w", {4, 5}), op.weight("b", {4})});
}

TEST(BackwardRule, of_gather_rows_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("gather_rows",
                              {op.weight("x", {4, 5}), op.build.input("rows", {7}, DType::s32)});
}

TEST(BackwardRule, of_layer_norm_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match(
      "layer_norm", {op.weight("x", {3, 6}), op.weight("scale", {6}), op.weight("shift", {6})},
      {{"epsilon", 1e-2}});
}

TEST(BackwardRule, of_gelu_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("gelu", {op.weight("x", {3, 6})});
}

TEST(BackwardRule, of_tanh_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("tanh", {op.weight("x", {3, 6})});
}

TEST(BackwardRule, of_leaky_relu_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("leaky_relu", {op.weight("x", {3, 6})}, {{"slope", 0.2}});
}

TEST(BackwardRule, of_masked_softmax_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match(
      "masked_softmax", {op.weight("x", {2, 3, 4, 5}), op.build.input("mask", {2, 5}, DType::s32)},
      {{"scale", 0.7}});
}

TEST(BackwardRule, of_causal_softmax_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("causal_softmax", {op.weight("x", {2, 3, 5, 5})}, {{"scale", 0.7}});
}

TEST(BackwardRule, of_dropout_is_its_derivative) {
  SingleOp op;
  op.expect_the_rule_to_match("dropout",
                              {op.weight("x", {20, 30}), op.build.input("key", {2}, DType::s32)},
                              {{"rate", 0.3}, {"stream", std::int64_t{5}}});
}

// All combinations of transposing and merging: 2 samples, 3 heads, matrices 4x5 times 5x6.
TEST(BackwardRule, of_every_batched_matmul_is_its_derivative) {
  for (std::int64_t mode = 0; mode < 32; ++mode) {
    const auto bit = [&](int i) { return mode >> i & 1; };
    const auto stored = [](std::int64_t rows, std::int64_t columns, std::int64_t transposed,
                           std::int64_t merged) -> Shape {
      if (transposed != 0) std::swap(rows, columns);
      if (merged != 0) return {2 * rows, 3 * columns};
      return {2, 3, rows, columns};
    };
    SCOPED_TRACE(mode);
    SingleOp op;
    op.expect_the_rule_to_match("batched_matmul",
                                {op.weight("a", stored(4, 5, bit(0), bit(2))),
                                 op.weight("b", stored(5, 6, bit(1), bit(3)))},
                                {{"batch", Shape{2, 3}},
                                 {"transposed", Shape{bit(0), bit(1)}},
                                 {"merged", Shape{bit(2), bit(3), bit(4)}}});
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Two losses over one weight, one of them through a frozen weight.
TEST(Differentiate, gives_the_derivative_of_a_sum_of_losses_and_leaves_frozen_weights_alone) {
  Program forward{.name = "turn"};
  ProgramBuilder build(forward);
  const auto x = build.input("x", {3, 4}, DType::f32);
  const auto trained = build.persistent("trained", {4, 4}, Role::weight, {});
  const auto fixed = build.persistent("fixed", {2, 4}, Role::weight, {});
  const auto bias = build.persistent("bias", {4}, Role::weight, {});
  const auto fixed_bias = build.persistent("fixed_bias", {2}, Role::weight, {});
  const auto y = build.emit_one("linear", "first", {x, trained, bias});
  const auto z = build.emit_one("linear", "second", {y, fixed, fixed_bias});
  const auto one = build.emit_one("sigmoid_cross_entropy", "one", {z}, {{"target", 1.0}});
  const auto other = build.emit_one("sigmoid_cross_entropy", "other", {y}, {{"target", 0.25}});
  forward.loss = build.emit_one("add", "loss", {one, other});
  forward.results = {forward.loss};
  forward.frozen = {fixed, fixed_bias};
  const Program program = differentiate(forward);
  ASSERT_EQ(program.gradients.size(), 2U);

  std::mt19937_64 random(testing::test_seed());
  Tensors tensors(program);
  testing::fill_randomly(program, tensors, random, 4);
  testing::execute_reference(program, tensors);
  for (const auto& [weight, gradient] : program.gradients) {
    EXPECT_TRUE(weight == trained || weight == bias);
    const Tensor found = tensors[gradient];
    const auto elements = some_elements(found.size(), 30, random);
    const Tensor slopes = finite_differences(tensors[weight], elements, [&] {
      for (const Op& op : forward.ops) testing::execute_reference(program, op, tensors);
      return tensors[program.loss][0];
    });
    expect_slopes(found, elements, slopes, program.value(weight).name);
  }
}

TEST(Differentiate, gives_the_derivative_of_the_loss_by_every_weight_of_a_residual_net) {
  const Program forward = testing::tiny_residual_net();
  const Program program = differentiate(forward);
  std::mt19937_64 random(testing::test_seed());
  Tensors tensors(program);
  testing::fill_randomly(program, tensors, random, 4);
  testing::execute_reference(program, tensors);
  for (const auto& [weight, gradient] : program.gradients) {
    const Tensor found = tensors[gradient];
    const auto elements = some_elements(found.size(), 30, random);
    const Tensor slopes = finite_differences(tensors[weight], elements, [&] {
      for (const Op& op : forward.ops)
        if (op.mutates.empty()) testing::execute_reference(program, op, tensors);
      return tensors[program.loss][0];
    });
    expect_slopes(found, elements, slopes, program.value(weight).name);
  }
}

}  // namespace
}  // namespace headroom::backward_rules_test
