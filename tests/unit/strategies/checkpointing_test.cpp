// Checkpointing: the same training with fewer values kept for the backward pass and more
// computation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/axes.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/pass.h"
#include "harness/program/recomputed.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace_io.h"
#include "strategies/checkpointing/regions.h"
#include "tests/registered_examples.h"
#include "tests/test_name.h"
#include "tests/unit/support/alike_layers.h"
#include "tests/unit/support/host_execution.h"
#include "tests/unit/support/kept_bytes.h"
#include "tests/unit/support/step_programs.h"
#include "tests/unit/support/temporary_directory.h"
#include "tests/unit/support/tiny_net.h"

namespace headroom::checkpointing_test {
namespace {

using testing::forward_of;
using ::testing::HasSubstr;
using ::testing::Optional;

// Each layer keeps its input and the inside of one nonlinearity.
Program chain(std::int64_t layers) { return alike_layers(layers, 8, 16); }

Program checkpointed(Program forward, const std::string& strategy) {
  return apply_pass<CheckpointingStrategy>(differentiate(std::move(forward)),
                                           Spec::parse(strategy));
}

Cell cell(const std::string& workload, const std::string& checkpointing,
          const std::string& device = "host(capacity=1GiB)", const std::string& rules = "onednn") {
  Cell cell{.workload = Spec::parse(workload),
            .device = Spec::parse(device),
            .rules = rules,
            .allocator = Spec::parse("bfc(growth=on)"),
            .warmup_steps = 1,
            .measured_steps = 2};
  set_axis(cell, "checkpointing", checkpointing);
  return cell;
}

class EveryCheckpointing : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryCheckpointing, trains_to_the_same_losses_bit_by_bit_wherever_it_does_something) {
  for (const char* workload :
       {"resnet(depth=18,width=8,batch=4)", "gpt(preset=tiny,vocabulary=500)",
        "bert(preset=tiny,vocabulary=500)", "gan(batch=4,latent=8,width=4)"}) {
    const Sample with = run_cell(cell(workload, GetParam()), 5, "");
    if (with.status == SampleStatus::invalid) {
      EXPECT_THAT(with.reason, HasSubstr("checkpointing=" + GetParam())) << workload;
      continue;
    }
    static std::map<std::string, Sample> plain;  // the same for all strategies
    if (!plain.contains(workload)) plain[workload] = run_cell(cell(workload, "none"), 5, "");
    const Sample& without = plain[workload];
    ASSERT_EQ(with.status, SampleStatus::ok) << workload << ": " << with.reason;
    EXPECT_EQ(with.loss, without.loss) << workload;
    EXPECT_TRUE(with.recomputed_ops_per_step > 0 || with.figures.contains("offload_peak_bytes"))
        << workload;
    EXPECT_EQ(without.recomputed_ops_per_step, 0);
  }
}

TEST_P(EveryCheckpointing, leaves_the_same_trace_on_host_and_on_meta_event_by_event) {
  const TemporaryDirectory directory;
  const auto trace = [&](const std::string& device) {
    const std::string path = (directory.path() / "a.hrtrace").string();
    const Sample sample =
        run_cell(cell("gpt(layers=6,preset=tiny,vocabulary=500)", GetParam(), device), 5, path);
    EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
    return read_trace(path);
  };
  const Trace host = trace("host(capacity=1GiB)");
  const Trace meta = trace("meta(capacity=1GiB)");
  ASSERT_GT(host.events.size(), 100u);
  EXPECT_EQ(first_difference(host, meta), "");
}

// Checks each kernel of the rewritten step by its definition; a test below compares with the plain
// step.
TEST_P(EveryCheckpointing, makes_a_program_whose_every_op_computes_what_it_should) {
  testing::judge_on_host(testing::with_sgd(checkpointed(testing::tiny_residual_net(), GetParam())));
}

TEST_P(EveryCheckpointing, gives_every_weight_the_gradient_of_the_plain_step) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 2; ++round) {
    const auto layers = static_cast<std::int64_t>(1 + random() % 12);
    for (const Program& forward :
         {chain(layers), testing::tiny_residual_net(2, 6 + static_cast<std::int64_t>(random() % 4)),
          forward_of("gpt(hidden=20,heads=2,layers=3,batch=2,context=11,sequence=9,"
                     "vocabulary=50)")}) {
      const Program plain = differentiate(forward);
      const Program rewritten = checkpointed(forward, GetParam());
      validate(rewritten);
      testing::Tensors before(plain), after(rewritten);
      testing::fill_randomly(plain, before, random, 4);
      for (ValueId id = 0; id < rewritten.values.size(); ++id) {
        const ValueId same = plain.find(rewritten.value(id).name);
        if (same != kNoValue) after[id] = before[same];
      }
      testing::execute_reference(plain, before);
      testing::execute_reference(rewritten, after);
      ASSERT_EQ(rewritten.gradients.size(), plain.gradients.size());
      for (std::size_t i = 0; i < plain.gradients.size(); ++i)
        EXPECT_EQ(after[rewritten.gradients[i].second], before[plain.gradients[i].second])
            << plain.value(plain.gradients[i].first).name;
    }
  }
}

TEST_P(EveryCheckpointing, never_repeats_an_op_that_changes_something) {
  const Program program = checkpointed(testing::tiny_residual_net(), GetParam());
  for (const Op& op : program.ops) EXPECT_TRUE(!is_recomputed(op) || op.mutates.empty()) << op.name;
  EXPECT_EQ(std::count_if(program.ops.begin(), program.ops.end(),
                          [](const Op& op) { return op.kind == "update_statistics"; }),
            2);
}

INSTANTIATE_TEST_SUITE_P(Strategies, EveryCheckpointing,
                         ::testing::ValuesIn(registered_examples<CheckpointingStrategy>()),
                         [](const auto& info) { return test_name(info.param); });

// The number of saved activations of one layer's size. Of `layers` layers, the plain step saves
// what each gelu reads, what each linear but the first reads, and the probabilities. The modules
// are the layers and the loss.
std::int64_t saved(const std::string& strategy, std::int64_t layers) {
  constexpr Bytes kActivation = Bytes{8} * 16 * 4;
  const Bytes bytes = checkpointing::saved_bytes(checkpointed(chain(layers), strategy));
  EXPECT_EQ(bytes % kActivation, 0u);
  return static_cast<std::int64_t>(bytes / kActivation);
}

TEST(Checkpointing, keeps_of_a_chain_what_passes_between_segments_and_the_last_segment_whole) {
  EXPECT_EQ(saved("none", 12), 12 + 11 + 1);
  EXPECT_EQ(saved("every(n=1)", 12), 11 + 1);
  EXPECT_EQ(saved("every(n=4)", 12), 2 + 1);          // after layers 3 and 7
  EXPECT_EQ(saved("every(n=4)", 11), 2 + 3 + 2 + 1);  // and the last segment: 3 layers and the loss
  EXPECT_EQ(saved("recursive", 7), 2 + 1);            // after layers 3 and 5
}

// m*m modules in m segments of m: m - 1 values between segments and 2(m - 1) in the last.
TEST(Checkpointing, by_sqrt_saves_in_proportion_to_the_root_of_the_depth_and_every_to_the_depth) {
  for (const std::int64_t m : {3, 4, 8, 16}) {
    const std::int64_t layers = m * m - 1;
    EXPECT_EQ(saved("none", layers), 2 * layers);
    EXPECT_EQ(saved("every(n=1)", layers), layers);
    EXPECT_EQ(saved("sqrt", layers), 3 * (m - 1)) << m;
  }
}

TEST(Checkpointing, in_halves_saves_in_proportion_to_the_logarithm_of_the_depth) {
  for (std::int64_t doublings = 2; doublings <= 8; ++doublings)
    EXPECT_EQ(saved("recursive", (std::int64_t{1} << doublings) - 1), doublings) << doublings;
}

std::int64_t repeated(const std::string& strategy, std::int64_t layers) {
  return recomputed_ops(checkpointed(chain(layers), strategy));
}

// A segment of n layers repeats all of its 2n ops except the last, whose result was kept.
TEST(Checkpointing, repeats_of_a_chain_what_leads_to_the_dropped_activations) {
  EXPECT_EQ(repeated("every(n=1)", 12), 12);
  EXPECT_EQ(repeated("every(n=4)", 12), 3 * 7);
  // With 8 modules: 7 ops of the first four layers, 3 of the first two, 3 of layers 4 and 5, and
  // one each of layers 0, 2, 4 and 6.
  EXPECT_EQ(repeated("recursive", 7), 7 + 3 + 3 + 4);
}

// Korthikanti et al. 2022, section 5: removes attention's share, 5 a s / h of 34 + 5 a s / h.
TEST(Checkpointing, selective_leaves_of_a_transformer_layer_what_the_closed_form_says) {
  const auto [s, b, h] = std::tuple(512, 2, 1024);
  const Program program = checkpointed(
      forward_of("gpt(layers=3,hidden=1024,heads=16,sequence=512,batch=2,vocabulary=1000)"),
      "selective");
  EXPECT_NEAR(testing::kept_by_layer(program, "decoder.1.") / (34.0 * s * b * h), 1, 0.001);
}

TEST(Checkpointing, that_recomputes_nothing_makes_the_sample_invalid) {
  const Sample sample = run_cell(
      cell("resnet(depth=18,width=8,batch=4)", "selective", "meta(capacity=1GiB)", "dense"), 5, "");
  EXPECT_EQ(sample.status, SampleStatus::invalid);
  EXPECT_EQ(sample.reason, "checkpointing=selective: no op of 'train' is recomputed");
}

TEST(Checkpointing, is_not_engaged_where_as_much_is_saved_as_before) {
  const Program plain = differentiate(chain(4));
  Program pointless = plain;
  repeat(pointless, plain.ops[1]);
  EXPECT_THAT(checkpointing::why_not_engaged(Spec("every"), plain, pointless),
              Optional(HasSubstr("bytes for the backward pass")));
  EXPECT_EQ(checkpointing::why_not_engaged(Spec("every"), plain, checkpointed(chain(4), "every")),
            std::nullopt);
}

TEST(Checkpointing, refuses_segments_of_nothing) {
  for (const char* bad : {"every(n=0)", "every(n=-3)"})
    EXPECT_THROW(checkpointed(chain(4), bad), InputError) << bad;
  Cell any;
  for (const char* bad : {"every(m=2)", "evry", "sqrt(n=2)"})
    EXPECT_THROW(set_axis(any, "checkpointing", bad), InputError) << bad;
}

}  // namespace
}  // namespace headroom::checkpointing_test
