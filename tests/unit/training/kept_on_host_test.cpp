// Checkpoints that stay in host memory while the values between them are recomputed. The tests of
// checkpointing and of random pass stacks show that such steps train as the plain one does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/plan/axes.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/offload.h"
#include "harness/program/pass.h"
#include "harness/program/recomputed.h"
#include "harness/runner/run_cell.h"
#include "harness/training/step_counts.h"
#include "harness/training/training_plan.h"
#include "tests/unit/reference/reference.h"
#include "tests/unit/support/alike_layers.h"
#include "tests/unit/support/random_net.h"
#include "tests/unit/support/step_programs.h"

namespace headroom::kept_on_host_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::ThrowsMessage;

Program checkpointed(const Program& differentiated, const std::string& strategy) {
  return apply_pass<CheckpointingStrategy>(differentiated, Spec::parse(strategy));
}

constexpr std::int64_t kBatch = 1024;
constexpr Bytes kActivation = Bytes{kBatch} * 32 * 4;

// Each layer starts from the output of the previous one, next to which weights are small.
Program chain(std::int64_t layers) { return alike_layers(layers, kBatch, 32); }

// The first layer starts from the batch, which is not an activation.
TEST(KeptOnHost, of_a_chain_is_what_each_segment_starts_from) {
  for (const std::int64_t layers : {4, 9, 16}) {
    const Program step =
        checkpointed(differentiate(chain(layers)), "every(keep=host,n=1,prefetch=0)");
    const Offloaded offloaded = count_offloaded(testing::lowered(step, "dense"));
    EXPECT_EQ(offloaded.moved, static_cast<Bytes>(layers - 1) * kActivation) << layers;
    EXPECT_EQ(offloaded.peak, offloaded.moved) << layers;
    EXPECT_EQ(recomputed_ops(step), layers) << "the product of each layer";
  }
}

TEST(KeptOnHost, leaves_no_more_on_the_device_however_deep_the_network_is) {
  const auto peak = [](std::int64_t layers, const std::string& strategy) {
    return peak_live_bytes(
        testing::lowered(checkpointed(differentiate(chain(layers)), strategy), "dense"));
  };
  EXPECT_GE(peak(40, "every(n=1)"), peak(10, "every(n=1)") + 29 * kActivation);
  EXPECT_LE(peak(40, "every(keep=host,n=1)"), peak(10, "every(keep=host,n=1)") + 3 * kActivation);
}

// Halves of halves: the starting value of the second half is made in the forward pass; that of the
// first half is recomputed when the backward pass reaches it.
TEST(KeptOnHost, of_halves_of_halves_is_also_what_is_made_again_for_later) {
  for (const std::int64_t layers : {8, 16, 32}) {
    const auto step = [&](const std::string& keep) {
      return testing::lowered(checkpointed(differentiate(chain(layers)), "recursive" + keep),
                              "dense");
    };
    const Program program = step("(keep=host,prefetch=0)");
    const auto is_late = [](const Op& op) {
      return op.kind == "copy_out" && op.phase == Phase::backward;
    };
    EXPECT_GT(std::count_if(program.ops.begin(), program.ops.end(), is_late), 0) << layers;
    EXPECT_LT(peak_live_bytes(program), peak_live_bytes(step(""))) << layers;
    EXPECT_EQ(recomputed_ops(program), recomputed_ops(step(""))) << layers;
  }
}

// Checks steps of random networks op by op.
TEST(KeptOnHost, changes_nothing_else_and_brings_back_what_is_computed_from_again) {
  std::mt19937_64 random(testing::test_seed());
  int journeys = 0;
  for (int round = 0; round < 60; ++round) {
    const testing::RandomNet net(random(), 4, {.across_samples = true, .ignored_labels = true});
    const Program differentiated = differentiate(net.training_forward());
    const std::string strategy = round % 3 == 0   ? "recursive("
                                 : round % 3 == 1 ? "every(n=1,"
                                                  : "every(n=2,";
    const Program kept = checkpointed(differentiated, strategy + "keep=device)");
    const Program program = checkpointed(
        differentiated, strategy + "keep=host,prefetch=" + std::to_string(random() % 4) + ")");
    validate(program);
    std::map<ValueId, ValueId> origin;  // of each copy
    std::set<ValueId> left, needed;
    std::size_t place = 0;
    for (const Op& op : program.ops) {
      if (is_transfer(op)) {
        const ValueId from = op.inputs[0];
        origin[op.outputs[0]] = origin.contains(from) ? origin[from] : from;
        if (op.kind == "copy_out") left.insert(from);
        if (op.kind == "copy_in") needed.insert(op.outputs[0]);
        journeys += op.kind == "copy_out" ? 1 : 0;
        continue;
      }
      const Op& was = kept.ops[place++];
      ASSERT_EQ(op.name, was.name);
      for (std::size_t i = 0; i < op.inputs.size(); ++i) {
        const ValueId id = op.inputs[i];
        EXPECT_FALSE(left.contains(id)) << op.name << " reads what has left";
        EXPECT_EQ(origin.contains(id) ? origin[id] : id, was.inputs[i]) << op.name;
        if (is_recomputed(op)) needed.erase(id);
      }
    }
    EXPECT_EQ(place, kept.ops.size());
    EXPECT_TRUE(needed.empty()) << "something came back from which nothing is computed again";
  }
  EXPECT_GT(journeys, 0);
}

Sample run(const std::string& workload, const std::string& checkpointing,
           const std::string& device) {
  Cell cell{.workload = Spec::parse(workload),
            .device = Spec::parse(device),
            .rules = "onednn",
            .allocator = Spec("malloc"),
            .warmup_steps = 1,
            .measured_steps = 2};
  set_axis(cell, "checkpointing", checkpointing);
  return run_cell(cell, 5, "");
}

TEST(KeptOnHost, counts_both_what_is_computed_again_and_what_is_copied_on_host_as_on_meta) {
  for (const char* workload : {"resnet(depth=18,stem=imagenet,image=32,width=8,batch=4)",
                               "bert(preset=tiny)", "gpt(preset=tiny)", "gan(preset=tiny)"}) {
    const Sample plain = run(workload, "none", "host(capacity=1GiB)");
    for (const char* strategy : {"every(keep=host,n=2)", "sqrt(keep=host)", "recursive(keep=host)",
                                 "optimal(budget=0.6,keep=host)"}) {
      SCOPED_TRACE(std::string(workload) + " " + strategy);
      const Sample host = run(workload, strategy, "host(capacity=1GiB)");
      const Sample meta = run(workload, strategy, "meta(capacity=1GiB)");
      ASSERT_EQ(host.status, meta.status) << host.reason;
      if (host.status == SampleStatus::invalid) {
        EXPECT_THAT(host.reason, HasSubstr("checkpointing=")) << "too few modules";
        continue;
      }
      ASSERT_EQ(host.status, SampleStatus::ok) << host.reason;
      const TrainingPlan plan =
          plan_training(*make_workload(host.cell.workload), host.cell, "onednn");
      const StepCounts counts = count_step(plan);
      EXPECT_GT(counts.offloaded, 0U);
      EXPECT_GT(host.recomputed_ops_per_step, 0);
      EXPECT_EQ(host.recomputed_ops_per_step, meta.recomputed_ops_per_step);
      EXPECT_EQ(host.figures.at("offloaded_bytes_per_step"), static_cast<double>(counts.offloaded));
      EXPECT_EQ(host.figures, meta.figures);
      EXPECT_EQ(host.ledger.requested.overall_peak, meta.ledger.requested.overall_peak);
      EXPECT_EQ(host.ledger.allocated.overall_peak, meta.ledger.allocated.overall_peak);
      EXPECT_EQ(host.loss, plain.loss);
    }
  }
}

TEST(KeptOnHost, that_has_nothing_between_segments_is_not_engaged_and_says_so) {
  const auto& strategy = Registry<CheckpointingStrategy>::instance().find("every");
  const Program plain = differentiate(chain(1));  // the modules are the layer and the loss
  const Spec spec = Spec::parse("every(keep=host,n=1)");
  const Program step = apply_pass<CheckpointingStrategy>(plain, spec);
  EXPECT_GT(recomputed_ops(step), 0);
  EXPECT_THAT(strategy.why_not_engaged(spec, plain, step),
              Optional(HasSubstr("no kept value of 'train' leaves the device")));
}

TEST(KeptOnHost, refuses_places_it_does_not_know_and_fetching_what_has_not_left) {
  const Program plain = differentiate(chain(3));
  EXPECT_THAT([&] { checkpointed(plain, "every(keep=disk)"); },
              ThrowsMessage<InputError>(HasSubstr("keep must be device or host")));
  EXPECT_THAT([&] { checkpointed(plain, "sqrt(prefetch=2)"); },
              ThrowsMessage<InputError>(HasSubstr("use keep=host")));
  EXPECT_THROW(checkpointed(plain, "every(keep=host,prefetch=-1)"), InputError);
}

}  // namespace
}  // namespace headroom::kept_on_host_test
