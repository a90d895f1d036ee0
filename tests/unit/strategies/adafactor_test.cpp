// Adafactor: its results compared with the paper's formulas, and its state bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/step_programs.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::adafactor_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;
using testing::with_optimizer;

const Attributes kPaper = {{"clip_threshold", 1.0}, {"decay_rate", 0.8},
                           {"epsilon1", 1e-30},     {"epsilon2", 1e-3},
                           {"learning_rate", 0.01}, {"relative", std::int64_t{1}}};

TEST(HostKernel, of_adafactor_agrees_with_the_reference) {
  std::mt19937_64 random(testing::test_seed());
  const auto between = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 16; ++round) {
    Program program{.name = "update"};
    ProgramBuilder build(program);
    const auto state = [&](const char* name, const Shape& shape) {
      return build.persistent(name, shape, Role::optimizer_state, {});
    };
    Attributes attributes = kPaper;
    attributes["relative"] = between(0, 1);
    attributes["clip_threshold"] = 0.1 * static_cast<double>(between(1, 30));
    const ValueId steps = state("steps", {1});
    build.emit("count_step", "count", {steps}, {}, {steps});
    const Shape shapes[] = {{between(1, 70), between(1, 200)},
                            {between(1, 20), between(1, 20), between(1, 3), between(1, 3)},
                            {between(1, 500)}};
    for (const Shape& shape : shapes) {
      const std::string name = "w" + std::to_string(shape.size());
      const ValueId weight = build.persistent(name, shape, Role::weight, {});
      const ValueId gradient = build.input(name + ".gradient", shape, DType::f32);
      std::vector<ValueId> inputs = {weight, gradient};
      std::vector<ValueId> mutates = {weight};
      const auto add = [&](const char* suffix, const Shape& of) {
        mutates.push_back(state((name + suffix).c_str(), of));
        inputs.push_back(mutates.back());
      };
      if (shape.size() == 1) {
        add(".square", shape);
      } else {
        add(".row_square", {shape[0]});
        add(".column_square", {element_count(shape) / shape[0]});
      }
      inputs.push_back(steps);
      build.emit("adafactor", name + ".update", inputs, attributes, mutates);
    }
    testing::judge_on_host(program);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Weights in the layouts that the library chose for its convolutions: padded channel blocks.
TEST(Adafactor, computes_on_the_host_as_the_reference_does_in_whatever_layout_a_weight_has) {
  for (const char* optimizer : {"adafactor", "adafactor(learning_rate=0.01,clip_threshold=0.5)",
                                "adafactor(clip_norm=0.1)"})
    for (const std::int64_t channels : {10, 16, 33})
      testing::judge_on_host(with_optimizer(testing::tiny_residual_net(2, channels), optimizer));
}

TEST(Adafactor, keeps_a_number_for_each_row_and_each_column_and_nothing_else) {
  const Program program = with_optimizer(testing::tiny_residual_net(2, 10), "adafactor");
  std::map<std::string, Shape> states;
  for (const Value& value : program.values)
    if (value.role == Role::optimizer_state) states[value.name] = value.shape;
  EXPECT_EQ(states.at("stem.weight.row_square"), (Shape{10}));
  EXPECT_EQ(states.at("stem.weight.column_square"), (Shape{27}));
  EXPECT_EQ(states.at("head.weight.row_square"), (Shape{4}));
  EXPECT_EQ(states.at("head.weight.column_square"), (Shape{10}));
  EXPECT_EQ(states.at("head.bias.square"), (Shape{4}));
  Bytes wanted = 4;  // the count of steps
  for (const auto& [weight, gradient] : program.gradients) {
    const Shape& shape = program.value(weight).shape;
    const std::int64_t numbers =
        shape.size() == 1 ? shape[0] : shape[0] + element_count(shape) / shape[0];
    wanted += 4 * static_cast<Bytes>(numbers);
  }
  Bytes found = 0;
  for (const auto& [name, shape] : states) found += 4 * static_cast<Bytes>(element_count(shape));
  EXPECT_EQ(found, wanted);
}

TEST(Adafactor, refuses_numbers_that_mean_nothing) {
  for (const char* bad : {"adafactor(clip_threshold=0)", "adafactor(decay_rate=-1)",
                          "adafactor(epsilon1=0)", "adafactor(learning_rate=0)"})
    EXPECT_THROW(with_optimizer(testing::tiny_residual_net(), bad), InputError) << bad;
}

TEST(Adafactor, that_finds_no_matrix_is_not_engaged) {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  const ValueId weight = build.persistent("w", {3}, Role::weight, {});
  program.gradients = {{weight, build.input("g", {3}, DType::f32)}};
  const auto& strategy = Registry<OptimizerStrategy>::instance().find("adafactor");
  const Spec spec("adafactor");
  EXPECT_THAT(strategy.why_not_engaged(spec, program, strategy.apply(program, spec)),
              Optional(HasSubstr("'train' trains vectors only")));
  const Program before = differentiate(testing::tiny_residual_net());
  EXPECT_EQ(strategy.why_not_engaged(spec, before, strategy.apply(before, spec)), std::nullopt);
}

}  // namespace
}  // namespace headroom::adafactor_test
