// Pruning: masks zero the weights they name and take memory; removed channels release memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/axes.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"
#include "harness/workload/workload.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/random_sample.h"
#include "tests/unit/support/small_cells.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::pruning_test {
namespace {

Sample run(const std::string& workload, const std::string& pruning,
           const std::string& device = testing::kSmallHost, int steps = 4) {
  Sample sample =
      run_cell(testing::small_cell(workload, {{"pruning", pruning}}, steps, device), 5, "");
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  return sample;
}

constexpr const char* kResNet = "resnet(depth=18,width=8,batch=4)";

class EveryTinyWorkload : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryTinyWorkload, loses_the_stated_share_of_its_weights_to_zero) {
  for (const char* masks : {"magnitude(sparsity=0.7)", "magnitude(sparsity=0.7,end=3)"}) {
    const Sample sample = run(GetParam(), masks);
    EXPECT_NEAR(sample.zero_weight_share.value_or(0), 0.7, 0.01) << masks;
    for (const double loss : sample.loss) EXPECT_TRUE(std::isfinite(loss)) << masks;
  }
}

TEST_P(EveryTinyWorkload, sees_the_same_masked_weights_in_copies_as_in_place) {
  const Sample in_place = run(GetParam(), "magnitude(sparsity=0.5)");
  const Sample copies = run(GetParam(), "magnitude(sparsity=0.5,copy=on)");
  // From the third step on they differ, because in place a pruned weight starts again from zero.
  for (const std::size_t step : {0, 1})
    EXPECT_NEAR(copies.loss.at(step), in_place.loss.at(step), 1e-5 * in_place.loss.at(step));
}

INSTANTIATE_TEST_SUITE_P(Pruning, EveryTinyWorkload,
                         ::testing::Values(kResNet, "bert(preset=tiny,dropout=0)",
                                           "gpt(preset=tiny,dropout=0)", "gan(preset=tiny)"),
                         [](const auto& info) {
                           const std::string spec = info.param;
                           return spec.substr(0, spec.find('('));
                         });

TEST(Pruning, leaves_the_first_step_as_it_is) {
  EXPECT_EQ(run(kResNet, "magnitude(sparsity=0.9)").loss.front(),
            run(kResNet, "none").loss.front());
}

TEST(Pruning, by_masks_takes_more_memory_and_copies_still_more) {
  const char* const meta = "meta(capacity=8GiB)";
  const char* const resnet = "resnet(depth=18,batch=64)";  // its peak is not in the update
  const Bytes dense = run(resnet, "none", meta).lower_bound_bytes;
  const Bytes masks = run(resnet, "magnitude", meta).lower_bound_bytes;
  const Bytes copies = run(resnet, "magnitude(copy=on)", meta).lower_bound_bytes;
  EXPECT_GT(masks, dense);
  EXPECT_GT(copies, masks);
}

TEST(Pruning, by_channels_leaves_a_network_that_is_smaller_and_trains) {
  const Sample dense = run("resnet(depth=50,width=8,batch=4)", "none");
  const Sample half = run("resnet(depth=50,width=8,batch=4)", "channels(keep=0.5)");
  EXPECT_LT(half.parameter_count, dense.parameter_count);
  EXPECT_LT(half.flops_per_step, dense.flops_per_step);
  EXPECT_LT(half.lower_bound_bytes, dense.lower_bound_bytes);
  for (const double loss : half.loss) EXPECT_TRUE(std::isfinite(loss));
}

TEST(Pruning, by_channels_halves_the_inner_layers_of_a_transformer_and_nothing_else) {
  const Program dense = make_workload(Spec::parse("bert(preset=tiny)"))->training_forward();
  const Program half = apply_pass<PruningStrategy>(dense, Spec::parse("channels(keep=0.5)"));
  for (ValueId id = 0; id < dense.values.size(); ++id) {
    const Value& before = dense.value(id);
    if (!before.persistent) continue;
    Shape wanted = before.shape;
    if (before.name.ends_with(".inner.weight") || before.name.ends_with(".inner.bias"))
      wanted[0] /= 2;
    if (before.name.ends_with("feed_forward.output.weight")) wanted[1] /= 2;
    EXPECT_EQ(half.value(id).shape, wanted) << before.name;
  }
}

TEST(Pruning, that_never_begins_makes_the_cell_invalid) {
  Cell cell{.workload = Spec::parse(kResNet),
            .device = Spec::parse("host(capacity=1GiB)"),
            .rules = "onednn",
            .allocator = Spec::parse("bfc(growth=on)"),
            .pruning = Spec::parse("magnitude(begin=100)"),
            .warmup_steps = 1,
            .measured_steps = 1};
  const Sample sample = run_cell(cell, 5, "");
  EXPECT_EQ(sample.status, SampleStatus::invalid);
  EXPECT_THAT(sample.reason, ::testing::HasSubstr("no weight is zero"));
}

TEST(Pruning, refuses_shares_that_mean_nothing) {
  const Program program = make_workload(Spec::parse(kResNet))->training_forward();
  for (const char* bad : {"channels(keep=0)", "channels(keep=1)", "channels(keep=1.5)"})
    EXPECT_THROW(apply_pass<PruningStrategy>(program, Spec::parse(bad)), InputError) << bad;
}

// Counted per group, because an average over all weights could hide wrong groups.
TEST(TwoOfFour, leaves_exactly_two_of_each_group_in_whatever_layout_a_weight_has) {
  const Spec spec("two_of_four");
  for (const std::int64_t channels : {12, 16, 36}) {
    Program step =
        differentiate(apply_pass<PruningStrategy>(testing::tiny_residual_net(2, channels), spec));
    step = finish_pass<PruningStrategy>(testing::with_sgd(std::move(step)), spec);
    PersistentLayouts layouts;
    testing::HostExecution host(lower(std::move(step), "onednn", layouts));
    testing::Tensors tensors(host.program());
    std::mt19937_64 random(testing::test_seed());
    testing::fill_randomly(host.program(), tensors, random, 4);
    tensors[host.program().find("train.pruning_steps")] = {0};
    host.write_all(tensors);
    host.run_and_judge();
    if (::testing::Test::HasFatalFailure()) return;
    for (const char* name : {"block.weight", "down.weight", "head.weight"}) {
      const ValueId id = host.program().find(name);
      const testing::Tensor weight = host.read(id);
      const auto apart =
          static_cast<std::size_t>(host.program().value(id).shape.size() > 2 ? 9 : 1);
      for (std::size_t e = 0; e < weight.size(); ++e) {
        if (e / apart % 4 != 0) continue;
        int zeros = 0;
        for (std::size_t k = 0; k < 4; ++k) zeros += weight[e + k * apart] == 0 ? 1 : 0;
        ASSERT_EQ(zeros, 2) << name << " at " << e;
      }
    }
    EXPECT_EQ(host.program().find("stem.weight.mask"), kNoValue) << "three channels have no groups";
  }
}

TEST(TwoOfFour, zeroes_half_of_the_weights_and_takes_more_memory_not_less) {
  for (const char* workload : {kResNet, "gpt(preset=tiny,dropout=0)"}) {
    const Sample sample = run(workload, "two_of_four");
    EXPECT_NEAR(sample.zero_weight_share.value_or(0), 0.5, 0.01);
    for (const double loss : sample.loss) EXPECT_TRUE(std::isfinite(loss));
  }
  const char* const meta = "meta(capacity=8GiB)";
  const char* const resnet = "resnet(depth=18,batch=64)";
  const Sample masked = run(resnet, "two_of_four", meta);
  EXPECT_GT(masked.lower_bound_bytes, run(resnet, "none", meta).lower_bound_bytes);
  EXPECT_EQ(masked.ledger.requested.overall_peak, masked.lower_bound_bytes);
}

TEST(TwoOfFour, peaks_on_host_at_what_meta_counts) {
  Cell cell{.workload = Spec::parse(kResNet),
            .device = Spec::parse("host(capacity=1GiB)"),
            .rules = "onednn",
            .allocator = Spec::parse("bfc(growth=on)"),
            .pruning = Spec::parse("two_of_four"),
            .warmup_steps = 1,
            .measured_steps = 1};
  const Sample host = run_cell(cell, 5, "");
  cell.device = Spec::parse("meta(capacity=1GiB)");
  const Sample meta = run_cell(cell, 5, "");
  EXPECT_EQ(host.ledger.requested.overall_peak, meta.ledger.requested.overall_peak);
  EXPECT_EQ(host.ledger.reserved.overall_peak, meta.ledger.reserved.overall_peak);
}

TEST(TwoOfFour, says_where_there_are_no_groups_and_refuses_a_step_that_never_comes) {
  const Program program = testing::tiny_residual_net(2, 10);
  EXPECT_THROW(apply_pass<PruningStrategy>(program, Spec::parse("two_of_four")), NotSupported);
  EXPECT_THROW(apply_pass<PruningStrategy>(testing::tiny_residual_net(2, 12),
                                           Spec::parse("two_of_four(begin=0)")),
               InputError);
}

TEST(TwoOfFour, that_never_begins_makes_the_cell_invalid) {
  Cell cell{.workload = Spec::parse(kResNet),
            .device = Spec::parse("host(capacity=1GiB)"),
            .rules = "onednn",
            .allocator = Spec::parse("bfc(growth=on)"),
            .pruning = Spec::parse("two_of_four(begin=100)"),
            .warmup_steps = 1,
            .measured_steps = 1};
  const Sample sample = run_cell(cell, 5, "");
  EXPECT_EQ(sample.status, SampleStatus::invalid);
  EXPECT_THAT(sample.reason, ::testing::HasSubstr("no weight is zero"));
}

TEST(HostKernel, of_two_of_four_agrees_with_the_reference_where_magnitudes_are_equal) {
  std::mt19937_64 random(testing::test_seed());
  Program program{.name = "masks"};
  ProgramBuilder build(program);
  const Shape shape = {7, 8, 3, 2};
  const auto weight = build.persistent("weight", shape, Role::weight, {});
  const auto mask = build.persistent("mask", shape, Role::statistic, {});
  const auto steps = build.persistent("steps", {1}, Role::statistic, {});
  build.emit("two_of_four_mask", "choose", {weight, mask, steps}, {{"begin", std::int64_t{3}}},
             {mask});
  PersistentLayouts layouts;
  testing::HostExecution host(lower(program, "onednn", layouts));
  testing::Tensors tensors(host.program());
  testing::fill_randomly(host.program(), tensors, random, 2);
  for (double& w : tensors[weight]) w = static_cast<double>(random() % 5) - 2;
  for (const double step : {2.0, 3.0, 4.0}) {
    tensors[steps] = {step};
    host.write_all(tensors);
    host.run_and_judge();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(HostKernel, of_masks_agrees_with_the_reference) {
  std::mt19937_64 random(testing::test_seed());
  const auto below = [&](std::int64_t count) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
  };
  // Avoids shares at which rounding errors decide how many weights are pruned.
  std::uniform_real_distribution<double> share(0.05, 0.95);
  for (int i = 0; i < 30; ++i) {
    Program program{.name = "masks"};
    ProgramBuilder build(program);
    const Shape shape = {1 + below(60), 1 + below(200)};
    const auto weight = build.persistent("weight", shape, Role::weight, {});
    const auto mask = build.persistent("mask", shape, Role::statistic, {});
    const auto steps = build.persistent("steps", {1}, Role::statistic, {});
    build.emit("magnitude_mask", "choose", {weight, mask, steps},
               {{"initial", share(random)},
                {"final", share(random)},
                {"begin", std::int64_t{0}},
                {"end", below(4)},
                {"every", 1 + below(2)}},
               {mask});
    build.emit_one("masked", "copy", {weight, mask});
    build.emit("apply_mask", "apply", {weight, mask}, {}, {weight});
    PersistentLayouts layouts;
    testing::HostExecution host(lower(program, "onednn", layouts));
    testing::Tensors tensors(host.program());
    testing::fill_randomly(host.program(), tensors, random, 2);
    for (double& kept : tensors[mask]) kept = static_cast<double>(below(2));
    for (const std::int64_t step : {0, 1, 2, 3, 4}) {
      tensors[steps] = {static_cast<double>(step)};
      host.write_all(tensors);
      host.run_and_judge();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace headroom::pruning_test
