// Adam with 8-bit states: its results compared with codes built bit by bit, its state bytes, and
// how far its losses are from Adam's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/results/sample.h"
#include "tests/unit/reference/eight_bits.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/small_cells.h"
#include "tests/unit/support/step_programs.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::adam8bit_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;
using testing::Tensor;
using testing::with_optimizer;

const std::size_t kBlock = 256;

// A state before or after a step.
struct State {
  Tensor codes, scales, numbers;

  double at(std::size_t i) const {
    return numbers[static_cast<std::size_t>(codes[i])] * scales[i / kBlock];
  }
};

// Each scale is the largest magnitude of its block, and each code is a nearest one.
void judge_state(const State& state, const Tensor& wanted) {
  for (std::size_t begin = 0; begin < wanted.size(); begin += kBlock) {
    const std::size_t end = std::min(wanted.size(), begin + kBlock);
    double largest = 0;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(wanted[i]));
    ASSERT_NEAR(state.scales[begin / kBlock], largest, 1e-5 * largest);
    for (std::size_t i = begin; i < end; ++i) {
      double nearest = largest;
      for (const double number : state.numbers)
        nearest = std::min(nearest, std::abs(number * state.scales[i / kBlock] - wanted[i]));
      ASSERT_LE(std::abs(state.at(i) - wanted[i]), nearest + 1e-5 * largest) << i;
    }
  }
}

// Runs a step from random weights and states and judges each of its 8-bit updates in double.
void judge_updates(Program step, std::mt19937_64& random) {
  PersistentLayouts layouts;
  testing::HostExecution host(lower(std::move(step), "onednn", layouts));
  const Program& program = host.program();
  testing::Tensors before(program);
  testing::fill_randomly(program, before, random, 4);
  for (ValueId id = 0; id < program.values.size(); ++id) {
    const Value& value = program.value(id);
    for (double& x : before[id]) {
      if (value.dtype == DType::u8) x = static_cast<double>(random() % 256);
      if (value.name.ends_with(".scales")) x = std::abs(x);
      if (value.name.ends_with("steps")) x = static_cast<double>(random() % 20);
    }
  }
  host.write_all(before);
  host.run();
  int updates = 0;
  for (const Op& op : program.ops) {
    if (op.kind != "adam8bit") continue;
    ++updates;
    SCOPED_TRACE(program.value(op.inputs[0]).name + " " +
                 to_string(program.value(op.inputs[0]).shape));
    const auto state = [&](std::size_t operand, auto read) {
      return State{read(op.inputs[operand]), read(op.inputs[operand + 1]),
                   testing::eight_bit_numbers(operand == 2)};
    };
    const auto old = [&](ValueId id) { return before[id]; };
    const auto now = [&](ValueId id) { return host.read(id); };
    const State old_mean = state(2, old), old_square = state(4, old);
    const Tensor gradient = now(op.inputs[1]);
    const Tensor weight = now(op.inputs[0]);
    const double b1 = op.number("beta1"), b2 = op.number("beta2"), t = now(op.inputs[6])[0];
    Tensor mean(gradient.size()), square(gradient.size());
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      mean[i] = b1 * old_mean.at(i) + (1 - b1) * gradient[i];
      square[i] = b2 * old_square.at(i) + (1 - b2) * gradient[i] * gradient[i];
      const double corrected_mean = mean[i] / (1 - std::pow(b1, t));
      const double corrected_square = square[i] / (1 - std::pow(b2, t));
      const double direction =
          corrected_mean / (std::sqrt(corrected_square) + op.number("epsilon"));
      const double w = before[op.inputs[0]][i];
      const double change =
          op.number("learning_rate") * (direction + op.number("weight_decay") * w);
      ASSERT_NEAR(weight[i], w - change, 1e-5 * (1 + std::abs(w) + std::abs(change))) << i;
    }
    judge_state(state(2, now), mean);
    judge_state(state(4, now), square);
    if (::testing::Test::HasFatalFailure()) return;
  }
  ASSERT_GT(updates, 0);
}

TEST(Adam8Bit, has_256_numbers_of_each_kind_and_none_of_them_twice) {
  for (const bool is_signed : {true, false}) {
    const Tensor numbers = testing::eight_bit_numbers(is_signed);
    EXPECT_EQ(numbers.size(), 256u);
    EXPECT_TRUE(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
  }
}

TEST(Adam8Bit, computes_on_the_host_what_the_rule_says_in_whatever_layout_a_weight_has) {
  std::mt19937_64 random(testing::test_seed());
  for (const char* optimizer : {"adam8bit(min_8bit_size=0)",
                                "adam8bit(min_8bit_size=0,learning_rate=0.1,weight_decay=0.1)"})
    for (const std::int64_t channels : {5, 10, 16, 33}) {
      judge_updates(with_optimizer(testing::tiny_residual_net(2, channels), optimizer), random);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(Adam8Bit, starts_from_states_that_are_zero) {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  const ValueId weight = build.persistent("w", {300}, Role::weight, {});
  program.gradients = {{weight, build.input("g", {300}, DType::f32)}};
  const Spec spec = Spec::parse("adam8bit(min_8bit_size=0,learning_rate=1,epsilon=1e-8)");
  PersistentLayouts layouts;
  testing::HostExecution host(
      lower(apply_pass<OptimizerStrategy>(program, spec), "onednn", layouts));
  testing::Tensors tensors(host.program());
  std::mt19937_64 random(testing::test_seed());
  testing::fill_randomly(host.program(), tensors, random, 2);
  for (ValueId id = 0; id < host.program().values.size(); ++id)
    if (host.program().value(id).role == Role::optimizer_state)
      tensors[id].assign(tensors[id].size(), 0.0);
  host.write_all(tensors);
  host.run();
  // The first step of Adam is the learning rate whatever the gradient, except for epsilon.
  const Tensor after = host.read(weight);
  for (std::size_t i = 0; i < after.size(); ++i) {
    const double gradient = tensors[program.gradients[0].second][i];
    const double step = gradient / (std::abs(gradient) + 1e-8);
    EXPECT_NEAR(after[i], tensors[weight][i] - step, 1e-4) << gradient;
  }
}

TEST(Adam8Bit, keeps_two_bytes_a_parameter_and_two_scales_a_block_and_small_weights_in_fp32) {
  const Program program =
      with_optimizer(testing::tiny_residual_net(2, 32), "adam8bit(min_8bit_size=300)");
  Bytes wanted = 4;  // the count of steps
  int small = 0;
  for (const auto& [weight, gradient] : program.gradients) {
    const auto count = static_cast<Bytes>(element_count(program.value(weight).shape));
    if (count < 300) ++small;
    wanted += count < 300 ? 8 * count : 2 * count + 2 * 4 * ((count + 255) / 256);
  }
  ASSERT_GT(small, 0);
  Bytes found = 0;
  for (const Value& value : program.values)
    if (value.role == Role::optimizer_state)
      found += static_cast<Bytes>(element_count(value.shape)) * size_of(value.dtype);
  EXPECT_EQ(found, wanted);
}

std::vector<double> trained(const char* optimizer) {
  return testing::losses_of(
      testing::small_cell("gpt(preset=tiny,vocabulary=200)", {{"optimizer", optimizer}}, 40));
}

// Single steps may differ more: a square rounded to zero makes a long step.
TEST(Adam8Bit, trains_to_within_two_percent_of_the_loss_of_adam) {
  const auto last_ten = [](const std::vector<double>& loss) {
    return std::accumulate(loss.end() - 10, loss.end(), 0.0) / 10;
  };
  const std::vector<double> exact = trained("adam");
  const std::vector<double> rounded = trained("adam8bit(min_8bit_size=0)");
  EXPECT_NE(rounded, exact) << "states were not rounded";
  EXPECT_LT(last_ten(exact), 0.98 * exact.front()) << "too little was learnt to compare";
  EXPECT_NEAR(last_ten(rounded), last_ten(exact), 0.02 * last_ten(exact));
}

TEST(Adam8Bit, refuses_a_negative_size_and_says_where_no_weight_is_large_enough) {
  EXPECT_THROW(with_optimizer(testing::tiny_residual_net(), "adam8bit(min_8bit_size=-1)"),
               InputError);
  const Program before = differentiate(testing::tiny_residual_net());
  const auto& strategy = Registry<OptimizerStrategy>::instance().find("adam8bit");
  const auto why = [&](const char* text) {
    const Spec spec = Spec::parse(text);
    return strategy.why_not_engaged(spec, before, strategy.apply(before, spec));
  };
  EXPECT_THAT(why("adam8bit"), Optional(HasSubstr("has the 4096 elements from which on")));
  EXPECT_EQ(why("adam8bit(min_8bit_size=100)"), std::nullopt);
}

}  // namespace
}  // namespace headroom::adam8bit_test
