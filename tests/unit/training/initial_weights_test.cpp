// The initial values of weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "harness/base/registry.h"
#include "harness/device/device.h"
#include "harness/memory/recording_allocator.h"
#include "harness/plan/axes.h"
#include "harness/training/trainer.h"
#include "harness/workload/workload.h"
#include "tests/unit/support/small_cells.h"

// A function of the OpenMP runtime, declared here because clang's tools do not find gcc's omp.h.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int threads);

namespace headroom::initial_weights_test {
namespace {

struct Weight {
  double deviation;  // requested by its Program
  std::vector<float> numbers;
};

// The randomly drawn weights of a network whose largest weight has over 65,536 numbers.
std::map<std::string, Weight> drawn_weights(std::uint64_t seed) {
  const Cell cell = testing::small_cell("resnet(depth=18,width=16,batch=2)", {}, 2);
  const auto workload = make_workload(cell.workload);
  const TrainingPlan plan = plan_training(*workload, cell, cell.rules);
  const auto device = Registry<DeviceKind>::instance().find(cell.device.name()).create(cell.device);
  TraceRecorder recorder(0);
  const auto allocator = make_allocator(cell.allocator, device->memory());
  const Trainer trainer(plan, *device, *allocator, recorder, workload->open_data(seed), seed);
  std::map<std::string, Weight> weights;
  for (const Value* value : plan.persistent_values()) {
    if (value->initializer.fill != Fill::normal) continue;
    const auto bytes = trainer.read_persistent(*value);
    Weight& weight = weights[value->name];
    weight.deviation = value->initializer.parameter;
    weight.numbers.resize(bytes.size() / sizeof(float));
    std::memcpy(weight.numbers.data(), bytes.data(), bytes.size());
  }
  return weights;
}

TEST(InitialWeights, have_the_mean_and_the_deviation_of_their_program) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const auto& [name, weight] : drawn_weights(seed)) {
    const auto count = static_cast<double>(weight.numbers.size());
    double sum = 0, squares = 0;
    for (const float number : weight.numbers) {
      sum += number / weight.deviation;
      squares += std::pow(number / weight.deviation, 2);
    }
    // Six standard errors.
    EXPECT_LT(std::abs(sum / count), 6 / std::sqrt(count)) << name;
    EXPECT_LT(std::abs(squares / count - 1), 6 * std::sqrt(2 / count)) << name;
  }
}

TEST(InitialWeights, do_not_depend_on_the_number_of_threads) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto by_one = drawn_weights(7);
  omp_set_num_threads(3);
  const auto by_three = drawn_weights(7);
  omp_set_num_threads(threads);
  for (const auto& [name, weight] : by_one)
    EXPECT_EQ(weight.numbers, by_three.at(name).numbers) << name;
}

TEST(InitialWeights, differ_between_seeds_and_between_chunks_of_one_weight) {
  const auto weights = drawn_weights(7);
  const auto others = drawn_weights(8);
  std::size_t largest = 0;
  for (const auto& [name, weight] : weights) {
    EXPECT_NE(weight.numbers, others.at(name).numbers) << name;
    largest = std::max(largest, weight.numbers.size());
    for (std::size_t at = 65536; at < weight.numbers.size(); at += 65536)
      EXPECT_NE(weight.numbers[0], weight.numbers[at]) << name;
  }
  EXPECT_GT(largest, 65536u);
}

}  // namespace
}  // namespace headroom::initial_weights_test
