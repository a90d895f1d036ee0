// How an optimizer iterates over the weights: one by one, in parts, or all in one op.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>

#include "harness/base/error.h"
#include "harness/plan/axes.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/results/sample.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/small_cells.h"
#include "tests/unit/support/step_programs.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::optimizer_loop_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::ThrowsMessage;
using testing::with_optimizer;

const char* const kLoops[] = {"foreach", "fused"};

std::string spec_of(std::string_view rule, std::string_view loop, std::string_view more = "") {
  return fmt::format("{}(loop={}{})", rule, loop, more);
}

std::vector<double> losses(const std::string& workload, const std::string& optimizer) {
  return testing::losses_of(testing::small_cell(workload, {{"optimizer", optimizer}}));
}

// Weights are much larger than everything else, so memory peaks at the update.
Program wide_net(std::int64_t layers, std::int64_t width) {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  ValueId x = build.input("x", {1, width}, DType::f32);
  const ValueId labels = build.input("labels", {1}, DType::s32);
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::string name = "layer." + std::to_string(i);
    const ValueId weight =
        build.persistent(name + ".weight", {width, width}, Role::weight, {Fill::normal, 0.3});
    const ValueId bias = build.persistent(name + ".bias", {width}, Role::weight, {});
    x = build.emit_one("linear", name, {x, weight, bias});
  }
  program.loss = build.emit("softmax_cross_entropy", "loss", {x, labels})[0];
  program.results = {program.loss};
  return program;
}

Bytes peak(const Program& program) { return peak_live_bytes(testing::lowered(program, "dense")); }

Bytes weight_bytes(const Program& program) {
  Bytes sum = 0;
  for (const Value& value : program.values)
    if (value.role == Role::weight) sum += static_cast<Bytes>(element_count(value.shape)) * 4;
  return sum;
}

TEST(OptimizerLoop, trains_every_workload_to_the_same_losses_bit_by_bit) {
  for (const char* workload :
       {"resnet(depth=18,width=8,batch=4)", "gpt(preset=tiny,vocabulary=500)",
        "bert(preset=tiny,vocabulary=500)", "gan(batch=4,latent=8,width=4)"})
    for (const std::string rule : {"sgd", "adam"}) {
      const std::vector<double> one_by_one = losses(workload, rule);
      for (const std::string loop : kLoops)
        EXPECT_EQ(losses(workload, spec_of(rule, loop)), one_by_one)
            << workload << " " << rule << " " << loop;
    }
}

TEST(OptimizerLoop, computes_on_the_host_as_the_reference_does) {
  for (const std::string loop : kLoops)
    for (const std::string rest :
         {"", ",weight_decay=0", ",weight_decay=0.3", ",clip_norm=0.1", ",gradients=zeroed"})
      for (const std::string rule : {"sgd", "adam"}) {
        const std::string spec = spec_of(rule, loop, rest);
        SCOPED_TRACE(spec);
        testing::judge_on_host(with_optimizer(testing::tiny_residual_net(), spec));
        if (HasFatalFailure()) return;
      }
}

TEST(OptimizerLoop, over_all_weights_takes_a_few_ops_whatever_their_number) {
  const auto updates = [](const Program& program) {
    return std::count_if(program.ops.begin(), program.ops.end(), [](const Op& op) {
      return op.phase == Phase::update && op.kind != "hold";
    });
  };
  for (const std::int64_t layers : {2, 9}) {
    EXPECT_EQ(updates(with_optimizer(wide_net(layers, 4), "adam")), 2 * layers + 1);
    EXPECT_EQ(updates(with_optimizer(wide_net(layers, 4), "adam(loop=foreach)")), 4);
    EXPECT_EQ(updates(with_optimizer(wide_net(layers, 4), "adam(loop=fused)")), 2);
    EXPECT_EQ(updates(with_optimizer(wide_net(layers, 4), "sgd(loop=foreach)")), 2);
    EXPECT_EQ(updates(with_optimizer(wide_net(layers, 4), "sgd(loop=fused)")), 1);
  }
}

// At the update all gradients are alive and, for foreach, all values between two parts of the rule.
TEST(OptimizerLoop, of_foreach_takes_temporaries_of_all_weights_size_beside_all_gradients) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 5; ++round) {
    const Program net = wide_net(static_cast<std::int64_t>(2 + random() % 6),
                                 static_cast<std::int64_t>(40 + random() % 60));
    const Bytes weights = weight_bytes(net), loss = sizeof(float);
    const auto update_peak = [&](Bytes states, Bytes temporaries) {
      return weights + states + weights /* gradients */ + temporaries + loss;
    };
    const Bytes steps = sizeof(float);
    EXPECT_EQ(peak(with_optimizer(net, "adam(loop=foreach)")),
              update_peak(2 * weights + steps, weights));
    EXPECT_EQ(peak(with_optimizer(net, "sgd(loop=foreach)")), update_peak(weights, weights));
    EXPECT_EQ(peak(with_optimizer(net, "sgd(loop=foreach,weight_decay=0)")),
              peak(with_optimizer(net, "sgd(loop=fused,weight_decay=0)")));
    EXPECT_LE(peak(with_optimizer(net, "adam(loop=fused)")),
              peak(with_optimizer(net, "adam(loop=foreach)")) - weights / 2);
  }
}

TEST(OptimizerLoop, that_needs_all_gradients_says_why_it_cannot_step_in_the_backward_pass) {
  for (const std::string loop : kLoops)
    EXPECT_THAT([&] { with_optimizer(wide_net(2, 4), spec_of("adam", loop, ",step=in_backward")); },
                ThrowsMessage<NotSupported>(HasSubstr("waits for the last gradient")));
  EXPECT_NO_THROW(with_optimizer(wide_net(2, 4), "adam(loop=per_tensor,step=in_backward)"));
}

TEST(OptimizerLoop, refuses_words_it_does_not_know_and_rules_without_it) {
  EXPECT_THAT([] { with_optimizer(wide_net(2, 4), "sgd(loop=all)"); },
              ThrowsMessage<InputError>(HasSubstr("take per_tensor, foreach or fused")));
  EXPECT_THROW(with_optimizer(wide_net(2, 4), "adafactor(loop=foreach)"), InputError);
}

TEST(OptimizerLoop, over_a_single_weight_is_not_engaged) {
  Program program{.name = "train"};
  ProgramBuilder build(program);
  const ValueId x = build.input("x", {2, 3, 5, 5}, DType::f32);
  const ValueId labels = build.input("labels", {2}, DType::s32);
  const ValueId weight = build.persistent("weight", {4, 3, 1, 1}, Role::weight, {});
  const ValueId image = build.emit_one("convolution", "conv", {x, weight},
                                       {{"strides", Shape{1, 1}}, {"padding", Shape{0, 0, 0, 0}}});
  const ValueId y = build.emit_one("global_average_pool", "pool", {image});
  program.loss = build.emit("softmax_cross_entropy", "loss", {y, labels})[0];
  program.results = {program.loss};
  for (const std::string rule : {"sgd", "adam"})
    for (const std::string loop : kLoops) {
      const Spec spec = Spec::parse(spec_of(rule, loop));
      const auto& strategy = Registry<OptimizerStrategy>::instance().find(rule);
      const Program before = differentiate(program);
      EXPECT_THAT(
          strategy.why_not_engaged(spec, before, apply_pass<OptimizerStrategy>(before, spec)),
          Optional(HasSubstr("no op changes two weights of 'train'")));
      const Program several = differentiate(wide_net(2, 4));
      EXPECT_EQ(
          strategy.why_not_engaged(spec, several, apply_pass<OptimizerStrategy>(several, spec)),
          std::nullopt);
    }
}

}  // namespace
}  // namespace headroom::optimizer_loop_test
