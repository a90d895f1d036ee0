// Training steps for which the CUDA device has every kernel. Lowering checks the kinds of ops
// before it looks for a GPU, so this test needs only the module.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/cuda/load_module.h"
#include "harness/program/pass.h"
#include "harness/training/training_plan.h"
#include "tests/registered_examples.h"

namespace headroom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char* const kWorkloads[] = {"resnet(preset=tiny)", "bert(preset=tiny,dropout=0.1)",
                                  "gpt(preset=tiny,dropout=0.1)", "gan(preset=tiny)",
                                  "gan(model=resnet,preset=tiny)"};

class CudaCoverage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_module().module == nullptr) GTEST_SKIP() << cuda_module().problem;
  }

  // Fails when the device refuses an op of the cell; a missing GPU is not a failure here.
  void expect_covered(Cell cell) {
    SCOPED_TRACE(cell.id());
    try {
      plan_training(*make_workload(cell.workload), cell, "cudnn");
    } catch (const Error& error) {
      if (cuda_module().module->unavailable().empty()) throw;
      EXPECT_THAT(error.what(), Not(HasSubstr("no kernel")));
      EXPECT_THAT(error.what(), HasSubstr("ask the GPU for its workspaces"));
    }
  }
};

Cell cell_of(const char* workload) {
  return {.workload = Spec::parse(workload),
          .device = Spec("cuda"),
          .rules = "cudnn",
          .allocator = Spec("bfc")};
}

template <typename Strategy>
std::vector<Spec> examples() {
  std::vector<Spec> specs;
  for (const std::string& example : registered_examples<Strategy>())
    specs.push_back(Spec::parse(example));
  return specs;
}

TEST_F(CudaCoverage, reaches_every_workload_under_every_optimizer) {
  for (const char* workload : kWorkloads)
    for (const Spec& optimizer : examples<OptimizerStrategy>()) {
      Cell cell = cell_of(workload);
      cell.optimizer = optimizer;
      expect_covered(cell);
    }
}

TEST_F(CudaCoverage, reaches_pruning_accumulation_and_checkpointing) {
  Cell pruned = cell_of("resnet(preset=tiny)");
  for (const char* pruning : {"magnitude(sparsity=0.5)", "magnitude(copy=on,sparsity=0.5)"}) {
    pruned.pruning = Spec::parse(pruning);
    expect_covered(pruned);
  }
  Cell groups = cell_of("gpt(preset=tiny,dropout=0.1)");
  groups.pruning = Spec("two_of_four");
  expect_covered(groups);
  for (const char* workload : kWorkloads) {
    Cell accumulated = cell_of(workload);
    accumulated.accumulation = Spec::parse("micro_batches(k=2)");
    expect_covered(accumulated);
    Cell offloading = cell_of(workload);
    offloading.checkpointing = Spec("offload");
    expect_covered(offloading);
  }
}

bool is_refused(const Spec& precision) {
  const auto& refusals = Registry<PrecisionStrategy>::instance().find(precision.name()).refuses;
  return std::any_of(refusals.begin(), refusals.end(), [](const Refusal& refusal) {
    return refusal.axis == "device" && refusal.name == "cuda";
  });
}

TEST_F(CudaCoverage, reaches_every_precision_that_is_not_refused) {
  for (const char* workload : kWorkloads)
    for (const Spec& precision : examples<PrecisionStrategy>()) {
      if (is_refused(precision)) continue;
      Cell cell = cell_of(workload);
      cell.precision = precision;
      expect_covered(cell);
    }
}

}  // namespace
}  // namespace headroom
