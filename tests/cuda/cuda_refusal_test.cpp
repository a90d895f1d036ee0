// A GPU that refuses a call, or is lost, at any point of a run: the sample reports it, and no other
// run is harmed. Runs on the simulated GPU, which refuses the calls it is told to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "harness/base/error.h"
#include "harness/device/cuda/load_module.h"
#include "harness/runner/run_cell.h"
#include "tests/unit/reference/reference.h"

namespace headroom {
namespace {

using ::testing::HasSubstr;

constexpr const char* kVariable = "HEADROOM_SIMULATED_GPU_REFUSES";

// Cells that use every feature that makes calls beyond those of plain steps.
const std::vector<Cell>& cells() {
  const auto cell = [](const char* allocator, const char* checkpointing, const char* execution) {
    return Cell{.workload = Spec::parse("bert(size=tiny,batch=2,sequence=16,vocabulary=500)"),
                .device = Spec::parse("cuda(capacity=512MiB)"),
                .rules = "cudnn",
                .allocator = Spec::parse(allocator),
                .execution = Spec::parse(execution),
                .checkpointing = Spec::parse(checkpointing),
                .warmup_steps = 1,
                .measured_steps = 1};
  };
  static const std::vector<Cell> all = {
      cell("bfc(growth=on)", "offload(prefetch=1)", "last_use"),
      cell("bfc(growth=on)", "offload(prefetch=1)", "captured"),
      cell("expandable", "none", "last_use"),
      cell("stitching", "none", "last_use"),
      cell("async", "none", "last_use"),
      cell("caching", "sqrt", "last_use"),
  };
  return all;
}

class CudaRefusal : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    const LoadedCudaModule& loaded = cuda_module();
    if (loaded.module == nullptr || !loaded.module->simulated)
      GTEST_SKIP() << "not on a simulated GPU, which can be told to refuse calls";
  }
  void TearDown() override { unsetenv(kVariable); }

  struct Outcome {
    std::string problem;  // empty when all went well
    std::vector<double> loss;
  };
  static Outcome run(const std::string& refused) {
    setenv(kVariable, refused.c_str(), 1);
    try {
      const Sample sample = run_cell(cells()[GetParam()], 7, "");
      return {sample.status == SampleStatus::ok ? "" : "sample: " + sample.reason, sample.loss};
    } catch (const Error& error) {
      return {error.what(), {}};
    }
  }

  // An upper bound on the calls that can be refused: a power of two that the cell does not reach.
  static std::uint64_t calls() {
    std::uint64_t most = 1;
    while (!run(std::to_string(most)).problem.empty()) most *= 2;
    return most;
  }
};

TEST_P(CudaRefusal, of_one_call_or_all_from_there_is_told_and_harms_no_later_run) {
  const Outcome untouched = run("");
  ASSERT_EQ(untouched.problem, "");
  std::mt19937_64 random(testing::test_seed());
  const std::uint64_t most = calls();
  ASSERT_GT(most, 100U);
  for (int round = 0; round < 12; ++round) {
    const std::uint64_t nth =
        round < 4 ? 1 + round : std::uniform_int_distribution<std::uint64_t>(1, most)(random);
    for (const char* from_there : {"", "+"}) {
      const std::string refused = std::to_string(nth) + from_there;
      const Outcome outcome = run(refused);
      if (outcome.problem.empty())  // the strategy recovered, or the call was never made
        EXPECT_EQ(outcome.loss, untouched.loss) << "call " << refused;
      else
        EXPECT_THAT(outcome.problem, HasSubstr("refused")) << "call " << refused;
    }
    EXPECT_EQ(run("").loss, untouched.loss) << "after " << nth;
  }
}

INSTANTIATE_TEST_SUITE_P(Cells, CudaRefusal, ::testing::Range(std::size_t{0}, cells().size()));

}  // namespace
}  // namespace headroom
