// The residual adversarial networks on every axis of a cell: each choice trains them or reports why
// it cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/base/registry.h"
#include "harness/plan/axes.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"

namespace headroom::gan_axes_test {
namespace {

Sample run(const std::string& axis, const std::string& choice,
           const std::string& device = "host(capacity=1GiB)") {
  Cell cell{.workload = Spec::parse("gan(model=resnet,preset=tiny)"),
            .device = Spec::parse(device),
            .rules = "onednn",
            .allocator = Spec::parse("bfc(growth=on)"),
            .optimizer = Spec("adam"),
            .warmup_steps = 1,
            .measured_steps = 1};
  set_axis(cell, axis, choice);
  return run_cell(cell, 5, "");
}

template <typename Strategy>
void add_examples(const std::string& axis,
                  std::vector<std::pair<std::string, std::string>>& choices) {
  for (const auto& [name, strategy] : Registry<Strategy>::instance().all())
    for (const std::string& example : strategy.examples) choices.emplace_back(axis, example);
}

std::vector<std::pair<std::string, std::string>> every_choice() {
  std::vector<std::pair<std::string, std::string>> choices = {
      {"accumulation", "micro_batches(k=2)"}};
  add_examples<PruningStrategy>("pruning", choices);
  add_examples<CheckpointingStrategy>("checkpointing", choices);
  add_examples<ExecutionStrategy>("execution", choices);
  add_examples<OptimizerStrategy>("optimizer", choices);
  add_examples<PrecisionStrategy>("precision", choices);
  return choices;
}

// Choices that only change memory handling give bit-identical losses.
TEST(ResNetGan, trains_under_every_choice_of_every_axis_or_says_why_not) {
  const std::vector<double> plain = run("checkpointing", "none").loss;
  int trained = 0;
  for (const auto& [axis, choice] : every_choice()) {
    const Sample sample = run(axis, choice);
    SCOPED_TRACE(axis + "=" + choice + ": " + sample.reason);
    if (sample.status != SampleStatus::ok) {
      EXPECT_TRUE(sample.status == SampleStatus::unsupported ||
                  sample.status == SampleStatus::invalid);
      EXPECT_FALSE(sample.reason.empty());
      continue;
    }
    ++trained;
    ASSERT_EQ(sample.loss.size(), plain.size());
    for (const double loss : sample.loss) EXPECT_TRUE(std::isfinite(loss));
    if (axis == "checkpointing" || axis == "execution") {
      EXPECT_EQ(sample.loss, plain);
    }
  }
  EXPECT_GT(trained, 20);
}

TEST(ResNetGan, leaves_the_same_bytes_on_host_and_on_meta) {
  for (const auto& [axis, choice] : {std::pair("precision", "fp32"), std::pair("precision", "fp16"),
                                     std::pair("checkpointing", "sqrt")}) {
    const Sample host = run(axis, choice), meta = run(axis, choice, "meta(capacity=1GiB)");
    ASSERT_EQ(host.status, SampleStatus::ok) << host.reason;
    EXPECT_EQ(host.ledger.requested.overall_peak, meta.ledger.requested.overall_peak) << choice;
    EXPECT_EQ(host.ledger.allocated_after_step, meta.ledger.allocated_after_step) << choice;
  }
}

}  // namespace
}  // namespace headroom::gan_axes_test
