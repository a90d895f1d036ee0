// fp16 and its loss scale: which numbers fp16 holds, which steps are skipped, and what follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/axes.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::loss_scaling_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

Program cast_program(std::int64_t count, DType from, DType to) {
  Program program{.name = "cast"};
  ProgramBuilder build(program);
  const ValueId x = build.input("x", {count}, from);
  build.emit_one("cast", "y", {x}, {{"to", static_cast<std::int64_t>(to)}});
  PersistentLayouts layouts;
  return lower(std::move(program), "onednn", layouts);
}

testing::Tensor cast(const testing::Tensor& numbers, DType from, DType to) {
  testing::HostExecution host(cast_program(static_cast<std::int64_t>(numbers.size()), from, to));
  host.write(host.program().inputs[0], numbers);
  host.run();
  return host.read(host.program().ops.back().outputs[0]);
}

// Decodes bit by bit, as IEEE 754 defines binary16.
double f16_of(unsigned bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10U & 31U);
  const double fraction = static_cast<double>(bits & 1023U) / 1024;
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VAL : std::nan("");
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15));
}

TEST(Fp16, reads_every_one_of_its_numbers) {
  testing::Tensor numbers;
  for (unsigned bits = 0; bits < 65536; ++bits) numbers.push_back(f16_of(bits));
  const testing::Tensor found = cast(numbers, DType::f16, DType::f32);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    ASSERT_TRUE(found[i] == numbers[i] || (std::isnan(found[i]) && std::isnan(numbers[i])))
        << std::hex << i << " is " << numbers[i] << ", not " << found[i];
}

TEST(Fp16, rounds_to_the_nearest_of_its_numbers_and_to_even_at_ties) {
  std::mt19937_64 random(testing::test_seed());
  testing::Tensor numbers;
  for (int i = 0; i < 100000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    const float number = std::bit_cast<float>(bits);
    if (std::isfinite(number)) numbers.push_back(number);
  }
  // The midpoint of neighbours, and the floats beside it.
  for (unsigned bits = 0; bits < 0x7BFF; ++bits) {
    const auto middle = static_cast<float>((f16_of(bits) + f16_of(bits + 1)) / 2);
    for (const float near : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e9F)})
      numbers.push_back(random() % 2 == 0 ? near : -near);
  }
  for (const float large : {65504.0F, 65519.99F, 65520.0F, 65536.0F, HUGE_VALF})
    numbers.push_back(large);
  const testing::Tensor found = cast(numbers, DType::f32, DType::f16);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    ASSERT_EQ(found[i], std::isinf(numbers[i]) ? numbers[i] : testing::rounded_to_f16(numbers[i]))
        << numbers[i];
  EXPECT_TRUE(std::isnan(cast({std::nan("")}, DType::f32, DType::f16)[0]));
}

Program step_of(const std::string& precision, const std::string& optimizer) {
  const Spec spec = Spec::parse(precision);
  Program program =
      differentiate(apply_pass<PrecisionStrategy>(testing::tiny_residual_net(), spec));
  program = apply_to_gradients<PrecisionStrategy>(std::move(program), spec);
  program = apply_pass<OptimizerStrategy>(std::move(program), Spec::parse(optimizer));
  return finish_pass<PrecisionStrategy>(std::move(program), spec);
}

TEST(LossScaling, computes_every_op_of_a_step_as_the_reference_does) {
  for (const char* optimizer : {"sgd", "adam", "adafactor", "sgd(clip_norm=0.1)",
                                "sgd(loop=foreach)", "adam(loop=foreach)", "adam(loop=fused)"}) {
    testing::judge_on_host(step_of("fp16(loss_scale=32)", optimizer));
    if (HasFatalFailure()) return;
  }
}

struct Kept {
  std::map<std::string, testing::Tensor> before, after;
};

// One step from random weights, at the loss scale that the strategy starts from. Small weights
// leave the loss undecided: with large ones its gradient may be 0 in fp16, which moves and
// overflows nothing.
Kept stepped(const std::string& precision, const std::string& optimizer) {
  PersistentLayouts layouts;
  testing::HostExecution host(lower(step_of(precision, optimizer), "onednn", layouts));
  testing::Tensors tensors(host.program());
  std::mt19937_64 random(testing::test_seed());
  testing::fill_randomly(host.program(), tensors, random, 4);
  Kept kept;
  for (ValueId id = 0; id < host.program().values.size(); ++id) {
    const Value& value = host.program().value(id);
    if (!value.persistent) continue;
    if (value.name.starts_with("train.loss_scale")) tensors[id] = {value.initializer.parameter};
    if (value.role == Role::weight)
      for (double& weight : tensors[id]) weight = static_cast<float>(0.1 * weight);
    kept.before[value.name] = tensors[id];
  }
  host.write_all(tensors);
  host.run();
  for (ValueId id = 0; id < host.program().values.size(); ++id)
    if (host.program().value(id).persistent)
      kept.after[host.program().value(id).name] = host.read(id);
  return kept;
}

bool is_trained(const std::string& name) {
  return name.ends_with(".weight") || name.ends_with(".velocity") ||
         name.ends_with(".mean.codes") || name.ends_with("square") || name.ends_with(".steps");
}

TEST(LossScaling, leaves_weights_and_states_as_they_are_where_a_gradient_overflows) {
  for (const char* optimizer :
       {"sgd", "adam", "adafactor", "adam8bit(min_8bit_size=0)", "adam(clip_norm=1)",
        "sgd(loop=foreach)", "sgd(loop=fused)", "adam(loop=foreach)", "adam(loop=fused)"}) {
    SCOPED_TRACE(optimizer);
    const Kept overflow = stepped("fp16(initial_scale=1e30)", optimizer);
    int compared = 0;
    for (const auto& [name, tensor] : overflow.before)
      if (is_trained(name)) {
        EXPECT_EQ(overflow.after.at(name), tensor) << name;
        ++compared;
      }
    EXPECT_GT(compared, 5);
    EXPECT_EQ(overflow.after.at("train.loss_scale"), testing::Tensor{0.5 * 1e30F});
    EXPECT_EQ(overflow.after.at("train.loss_scale.skipped"), testing::Tensor{1});
    const Kept trained = stepped("fp16(initial_scale=32)", optimizer);
    EXPECT_NE(trained.after.at("block.weight"), trained.before.at("block.weight"));
    EXPECT_EQ(trained.after.at("train.loss_scale.skipped"), testing::Tensor{0});
    EXPECT_EQ(trained.after.at("train.loss_scale.good_steps"), testing::Tensor{1});
  }
}

Cell cell(const std::string& precision, int steps) {
  return {.workload = Spec::parse("gpt(preset=tiny,vocabulary=200)"),
          .device = Spec::parse("host(capacity=1GiB)"),
          .rules = "onednn",
          .allocator = Spec::parse("bfc(growth=on)"),
          .precision = Spec::parse(precision),
          .optimizer = Spec::parse("sgd"),
          .warmup_steps = 1,
          .measured_steps = steps - 1};
}

Sample run(const std::string& precision, int steps) {
  Sample sample = run_cell(cell(precision, steps), 5, "");
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  return sample;
}

TEST(LossScaling, doubles_after_so_many_good_steps_and_halves_with_each_one_left_out) {
  const Sample grown = run("fp16(initial_scale=1,growth_interval=2)", 7);
  EXPECT_EQ(grown.figures.at("loss_scale"), 8);
  EXPECT_EQ(grown.figures.at("skipped_steps"), 0);
  const double first = std::ldexp(1.0, 26);
  const Sample shrunk = run("fp16(initial_scale=67108864)", 16);
  EXPECT_GT(shrunk.figures.at("skipped_steps"), 0);
  EXPECT_EQ(shrunk.figures.at("loss_scale"),
            std::ldexp(first, -static_cast<int>(shrunk.figures.at("skipped_steps"))));
}

TEST(LossScaling, stays_where_it_is_told_to) {
  EXPECT_EQ(run("fp16(loss_scale=128)", 3).figures.at("loss_scale"), 128);
  EXPECT_TRUE(run("fp32", 2).figures.empty());
}

TEST(LossScaling, that_leaves_out_every_step_makes_the_cell_invalid) {
  const Sample sample = run_cell(cell("fp16(loss_scale=1e30)", 3), 5, "");
  EXPECT_EQ(sample.status, SampleStatus::invalid);
  EXPECT_THAT(sample.reason, HasSubstr("overflowed in each of 3 updates"));
}

TEST(LossScaling, trains_to_nearly_the_losses_of_fp32) {
  const std::vector<double> exact = run("fp32", 12).loss;
  const std::vector<double> rounded = run("fp16(loss_scale=1024)", 12).loss;
  EXPECT_NE(rounded, exact);
  for (std::size_t step = 0; step < exact.size(); ++step)
    EXPECT_NEAR(rounded[step], exact[step], 0.01 * exact[step]) << step;
}

TEST(LossScaling, trains_with_micro_batches_whose_gradients_are_scaled_alike) {
  Cell parts = cell("fp16(loss_scale=64)", 3);
  set_axis(parts, "workload", "gpt(preset=tiny,vocabulary=200,batch=4)");
  set_axis(parts, "accumulation", "micro_batches(k=2)");
  const Sample sample = run_cell(parts, 5, "");
  ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  EXPECT_EQ(sample.figures.at("skipped_steps"), 0);
  set_axis(parts, "precision", "fp32");
  const Sample exact = run_cell(parts, 5, "");
  for (std::size_t step = 0; step < 3; ++step)
    EXPECT_NEAR(sample.loss[step], exact.loss[step], 0.01 * exact.loss[step]);
}

// Updates that may be skipped are reordered, too, with a scale so large that some are skipped.
TEST(LossScaling, changes_no_number_in_whatever_order_a_graph_runs) {
  Cell some = cell("fp16(initial_scale=67108864)", 14);
  const Sample built = run_cell(some, 5, "");
  ASSERT_EQ(built.status, SampleStatus::ok) << built.reason;
  EXPECT_GT(built.figures.at("skipped_steps"), 0);
  for (const char* execution : {"graph", "graph(order=memory)", "graph(order=breadth_first)"}) {
    set_axis(some, "execution", execution);
    const Sample sample = run_cell(some, 5, "");
    ASSERT_EQ(sample.status, SampleStatus::ok) << execution << ": " << sample.reason;
    EXPECT_EQ(sample.loss, built.loss) << execution;
    EXPECT_EQ(sample.figures, built.figures) << execution;
  }
}

TEST(LossScaling, says_what_it_cannot_be_combined_with_and_which_numbers_mean_nothing) {
  Cell early = cell("fp16", 2);
  set_axis(early, "optimizer", "sgd(step=in_backward)");
  const Sample sample = run_cell(early, 5, "");
  EXPECT_EQ(sample.status, SampleStatus::unsupported);
  EXPECT_THAT(sample.reason, HasSubstr("is known after the last of them"));
  for (const char* bad : {"fp16(loss_scale=0)", "fp16(loss_scale=-8)", "fp16(initial_scale=0)",
                          "fp16(growth_interval=0)", "fp16(loss_scale=8,growth_interval=5)"})
    EXPECT_THROW(step_of(bad, "sgd"), InputError) << bad;
}

TEST(LossScaling, that_guards_no_update_is_not_engaged) {
  const auto& fp16 = Registry<PrecisionStrategy>::instance().find("fp16");
  const auto why = [&](Program program) {
    PersistentLayouts layouts;
    return fp16.why_not_lowered(lower(std::move(program), "dense", layouts), Spec("fp16"));
  };
  EXPECT_EQ(why(step_of("fp16", "adam")), std::nullopt);
  const Spec spec("fp16");
  Program unguarded = apply_pass<OptimizerStrategy>(
      differentiate(apply_pass<PrecisionStrategy>(testing::tiny_residual_net(), spec)),
      Spec("sgd"));
  EXPECT_THAT(why(std::move(unguarded)),
              Optional(HasSubstr("whether gradients overflowed or not")));
}

}  // namespace
}  // namespace headroom::loss_scaling_test
