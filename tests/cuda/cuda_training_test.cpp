// Whole training steps on the GPU, along every axis. Their numbers equal those of the host or of
// the plainest GPU run, and their bytes equal those that meta counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <ostream>
#include <string>

#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/allocator.h"
#include "harness/runner/run_cell.h"
#include "harness/trace/trace_io.h"
#include "harness/workload/workload.h"
#include "tests/registered_examples.h"
#include "tests/test_name.h"

namespace headroom::cuda_training_test {
namespace {

using ::testing::SizeIs;

constexpr const char* kTinyResNet = "resnet(depth=18,width=8,batch=2)";
constexpr const char* kTinyBert = "bert(size=tiny,batch=2,sequence=16,vocabulary=500)";
constexpr std::uint64_t kSeed = 7;

const DeviceKind& cuda() { return Registry<DeviceKind>::instance().find("cuda"); }

Cell cell_of(const char* workload) {
  return {.workload = Spec::parse(workload),
          .device = Spec::parse("cuda(capacity=1GiB)"),
          .rules = "cudnn",
          .allocator = Spec::parse("bfc(growth=on)"),
          .warmup_steps = 1,
          .measured_steps = 2};
}

Sample run(const Cell& cell) {
  Sample sample = run_cell(cell, kSeed, "");
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  return sample;
}

// Both capacities are multiples of the GPU's page size.
Cell on_meta(Cell cell) {
  const Bytes page = cuda().create(cell.device)->memory().granule();
  cell.device = Spec("meta", {{"capacity", "1GiB"}, {"granule", std::to_string(page)}});
  return cell;
}

struct Recorded {
  std::vector<double> loss;
  Trace trace;
};

Recorded record(const Cell& cell) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("headroom-cuda-" + std::to_string(::getpid()) + ".hrtrace");
  const Sample sample = run_cell(cell, kSeed, path.string());
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  Recorded recorded = {sample.loss, read_trace(path.string())};
  std::filesystem::remove(path);
  return recorded;
}

Trace trace_of(const Cell& cell) { return record(cell).trace; }

template <typename Parameter>
class OnCuda : public ::testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    if (const std::string reason = cuda().unavailable(); !reason.empty())
      GTEST_SKIP() << "no CUDA GPU: " << reason;
  }
};

class EveryAllocatorOnCuda : public OnCuda<std::string> {};

TEST_P(EveryAllocatorOnCuda, changes_nothing_in_the_losses) {
  static const std::vector<double> plain = run(cell_of(kTinyResNet)).loss;
  Cell cell = cell_of(kTinyResNet);
  cell.allocator = Spec::parse(GetParam());
  EXPECT_EQ(run(cell).loss, plain);
}

TEST_P(EveryAllocatorOnCuda, leaves_the_trace_that_it_leaves_on_meta) {
  Cell cell = cell_of(kTinyResNet);
  cell.allocator = Spec::parse(GetParam());
  if (cell.allocator.name() == "async") GTEST_SKIP() << "on meta a model of the driver's";
  EXPECT_EQ(first_difference(trace_of(cell), trace_of(on_meta(cell))), "");
}

// All strategies except poison, which needs a CPU to touch the memory.
std::vector<std::string> every_allocator() {
  std::vector<std::string> specs;
  for (const auto& [name, strategy] : Registry<AllocatorStrategy>::instance().all())
    if (!strategy.examples.empty() && name != "poison") specs.push_back(strategy.examples.front());
  return specs;
}

// In 16 bits, images are channels-last.
TEST_P(EveryAllocatorOnCuda, changes_nothing_in_16_bits) {
  Cell cell = cell_of(kTinyResNet);
  cell.precision = Spec("bf16");
  static const std::vector<double> plain = run(cell).loss;
  cell.allocator = Spec::parse(GetParam());
  const Recorded recorded = record(cell);
  EXPECT_EQ(recorded.loss, plain);
  if (cell.allocator.name() == "async") return;  // on meta a model of the driver's
  EXPECT_EQ(first_difference(recorded.trace, trace_of(on_meta(cell))), "");
}

INSTANTIATE_TEST_SUITE_P(Strategies, EveryAllocatorOnCuda, ::testing::ValuesIn(every_allocator()),
                         [](const auto& info) { return test_name(info.param); });

class EveryWorkloadOnCuda : public OnCuda<std::string> {};

// Only the first loss has the same weights and batch; later ones follow updates with different
// rounding.
TEST_P(EveryWorkloadOnCuda, begins_with_the_loss_of_the_host) {
  Cell cell = cell_of(GetParam().c_str());
  const std::vector<double> found = run(cell).loss;
  cell.device = Spec::parse("host(capacity=1GiB)");
  cell.rules = "onednn";
  const std::vector<double> wanted = run(cell).loss;
  ASSERT_THAT(found, SizeIs(wanted.size()));
  if (!wanted.empty()) {  // replay computes no losses
    EXPECT_NEAR(found.front(), wanted.front(), 1e-3 * std::abs(wanted.front()));
  }
}

TEST_P(EveryWorkloadOnCuda, leaves_the_trace_that_it_leaves_on_meta) {
  const Cell cell = cell_of(GetParam().c_str());
  EXPECT_EQ(first_difference(trace_of(cell), trace_of(on_meta(cell))), "");
}

INSTANTIATE_TEST_SUITE_P(Workloads, EveryWorkloadOnCuda,
                         ::testing::ValuesIn(registered_examples<WorkloadKind>()),
                         [](const auto& info) { return test_name(info.param); });

struct WayToStep {
  const char* execution = "last_use";
  const char* checkpointing = "none";
  const char* pipeline = "direct";
};

std::string name_of(const WayToStep& way) {
  return std::string(way.execution) + " " + way.checkpointing + " " + way.pipeline;
}

void PrintTo(const WayToStep& way, std::ostream* out) { *out << name_of(way); }

class EveryWayToStepOnCuda : public OnCuda<WayToStep> {};

TEST_P(EveryWayToStepOnCuda, changes_nothing_in_the_losses) {
  const std::pair<const char*, const char*> networks[] = {
      {kTinyResNet, "fp32"}, {kTinyResNet, "bf16"}, {kTinyBert, "fp32"}};
  for (const auto& [workload, precision] : networks) {
    Cell cell = cell_of(workload);
    cell.precision = Spec::parse(precision);
    static std::map<std::string, std::vector<double>> plain;
    std::vector<double>& wanted = plain[std::string(workload) + precision];
    if (wanted.empty()) wanted = run(cell).loss;
    cell.execution = Spec::parse(GetParam().execution);
    cell.checkpointing = Spec::parse(GetParam().checkpointing);
    cell.pipeline = Spec::parse_composition(GetParam().pipeline);
    EXPECT_EQ(run(cell).loss, wanted) << workload << " in " << precision;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, EveryWayToStepOnCuda,
    ::testing::Values(
        WayToStep{.execution = "eager"}, WayToStep{.execution = "graph"},
        WayToStep{.execution = "captured"}, WayToStep{.execution = "captured(pool=own)"},
        WayToStep{.checkpointing = "sqrt"}, WayToStep{.checkpointing = "offload(prefetch=1)"},
        WayToStep{.execution = "captured", .checkpointing = "offload(prefetch=1)"},
        WayToStep{.pipeline = "staging(2)|direct"}, WayToStep{.pipeline = "prefetch(2)|direct"}),
    [](const auto& info) { return test_name(name_of(info.param)); });

class EveryPrecisionOnCuda : public OnCuda<std::string> {};

TEST_P(EveryPrecisionOnCuda, begins_with_about_the_loss_of_fp32) {
  Cell cell = cell_of(kTinyBert);
  const double wanted = run(cell).loss.at(0);
  cell.precision = Spec::parse(GetParam());
  const Sample sample = run_cell(cell, kSeed, "");
  if (sample.status == SampleStatus::unsupported) GTEST_SKIP() << sample.reason;
  ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  EXPECT_NEAR(sample.loss.at(0), wanted, 0.01 * wanted);
}

INSTANTIATE_TEST_SUITE_P(Precisions, EveryPrecisionOnCuda,
                         ::testing::Values("tf32", "bf16", "fp16(loss_scale=1024)", "fp8"),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace headroom::cuda_training_test
