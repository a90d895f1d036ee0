// Properties of every registered optimizer, whatever its rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <numeric>

#include "harness/base/registry.h"
#include "harness/program/pass.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace.h"
#include "harness/trace/trace_io.h"
#include "tests/registered_examples.h"
#include "tests/test_name.h"
#include "tests/unit/support/temporary_directory.h"

namespace headroom::every_optimizer_test {
namespace {

const char* const kTinyGpt = "gpt(hidden=64,preset=tiny,vocabulary=200)";
const char* const kHost = "host(capacity=1GiB)";
const char* const kMeta = "meta(capacity=1GiB)";

Cell cell(const std::string& workload, const Spec& optimizer, const std::string& device,
          const std::string& rules = "onednn", int steps = 4) {
  return {.workload = Spec::parse(workload),
          .device = Spec::parse(device),
          .rules = rules,
          .allocator = Spec::parse("bfc(growth=on)"),
          .optimizer = optimizer,
          .warmup_steps = 1,
          .measured_steps = steps - 1};
}

Sample run(const Cell& cell, const std::string& trace = "") {
  Sample sample = run_cell(cell, 5, trace);
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  return sample;
}

class EveryOptimizer : public ::testing::TestWithParam<std::string> {
 protected:
  const Spec spec = Spec::parse(GetParam());
};

TEST_P(EveryOptimizer, leaves_the_same_trace_on_host_and_on_meta_event_by_event) {
  for (const char* workload :
       {kTinyGpt, "resnet(depth=18,width=10,batch=4)", "gan(batch=4,latent=8,width=4)"}) {
    SCOPED_TRACE(workload);
    TemporaryDirectory directory;
    Trace traces[2];
    for (const int i : {0, 1}) {
      const std::string path = (directory.path() / "run.hrtrace").string();
      run(cell(workload, spec, i == 0 ? kHost : kMeta), path);
      traces[i] = read_trace(path);
    }
    ASSERT_GT(traces[0].events.size(), 100u);
    EXPECT_EQ(first_difference(traces[0], traces[1]), "");
  }
}

TEST_P(EveryOptimizer, peaks_at_its_live_bytes_under_dense_rules) {
  const Sample sample = run(cell(kTinyGpt, spec, kMeta, "dense"));
  EXPECT_EQ(sample.ledger.requested.overall_peak, sample.lower_bound_bytes);
}

TEST_P(EveryOptimizer, in_the_backward_pass_trains_to_the_same_losses_bit_by_bit) {
  if (spec.has("clip_norm") || spec.has("gradients") || spec.has("loop"))
    GTEST_SKIP() << "cannot be combined with it";
  Spec in_backward = spec, after = spec;
  in_backward.set("step", "in_backward");
  after.set("step", "after_backward");
  EXPECT_EQ(run(cell(kTinyGpt, in_backward, kHost)).loss, run(cell(kTinyGpt, after, kHost)).loss);
}

TEST_P(EveryOptimizer, learns) {
  if (spec.has("step") || spec.has("gradients") || spec.has("loop"))
    GTEST_SKIP() << "trains as without it, bit by bit";
  const std::vector<double> loss = run(cell(kTinyGpt, spec, kHost, "onednn", 40)).loss;
  const auto mean_of_ten = [&](std::ptrdiff_t from) {
    const auto begin = loss.begin() + from;
    return std::accumulate(begin, begin + 10, 0.0) / 10;
  };
  for (const double of_step : loss) ASSERT_TRUE(std::isfinite(of_step));
  EXPECT_LT(mean_of_ten(30), 0.97 * mean_of_ten(0));
}

INSTANTIATE_TEST_SUITE_P(Strategies, EveryOptimizer,
                         ::testing::ValuesIn(registered_examples<OptimizerStrategy>()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace headroom::every_optimizer_test
