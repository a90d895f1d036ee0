// The workload, the pass and the claim that docs/how-to/add-*.md show must do what the pages say.
// EXAMPLE_CLAIM names the claim's file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <random>
#include <span>

#include "harness/claims/claim.h"
#include "harness/runner/run_cell.h"
#include "harness/verdicts/verify.h"

namespace headroom {
namespace {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST(ContributingExample, workload_learns) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  const Cell cell{.workload = Spec::parse("perceptron(batch=64)"),
                  .device = Spec::parse("host(capacity=64MiB)"),
                  .rules = "",
                  .allocator = Spec::parse("malloc"),
                  .warmup_steps = 1,
                  .measured_steps = 99};
  const Sample sample = run_cell(cell, seed, "");
  ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  ASSERT_EQ(sample.loss.size(), 100);
  const std::span losses = sample.loss;
  EXPECT_LT(mean(losses.last(20)), 0.7 * mean(losses.first(5)));
}

TEST(ContributingExample, pass_recomputes_and_changes_no_loss) {
  const auto train = [](const char* checkpointing) {
    const Cell cell{.workload = Spec::parse("resnet(depth=18,width=8,batch=4)"),
                    .device = Spec::parse("host(capacity=1GiB)"),
                    .rules = "",
                    .allocator = Spec::parse("malloc"),
                    .checkpointing = Spec::parse(checkpointing),
                    .warmup_steps = 1,
                    .measured_steps = 2};
    return run_cell(cell, 3, "");
  };
  const Sample sample = train("first_half");
  ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  EXPECT_GT(sample.recomputed_ops_per_step, 0);
  EXPECT_EQ(sample.loss, train("none").loss);
}

TEST(ContributingExample, claim_runs_and_is_judged) {
  const Claim claim = read_claim(std::getenv("EXAMPLE_CLAIM"));
  VerifyInput input;
  input.claims = {claim};
  input.experiments = experiments_of(claim);
  for (const Experiment& experiment : input.experiments) {
    for (int block = 1; block <= experiment.blocks; ++block) {
      for (const Arm& arm : experiment.arms) {
        Sample sample = run_cell(arm.cell, 1, "");
        EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
        sample.experiment = experiment.id;
        sample.arm = arm.name;
        sample.block = block;
        input.samples.push_back(sample);
      }
    }
  }
  const std::string verdicts = verdicts_json(input);
  EXPECT_THAT(verdicts, ::testing::HasSubstr(claim.id));
  // Whatever the verdict, it rests on what was run.
  EXPECT_THAT(verdicts, ::testing::Not(::testing::HasSubstr("\"INVALID\"")));
}

}  // namespace
}  // namespace headroom
