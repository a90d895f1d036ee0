// Exported weights: their bytes are counted, their rounding is checked and their accuracy is
// reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "bench/scenarios/int8_weights.h"
#include "harness/base/error.h"
#include "harness/plan/axes.h"
#include "harness/plan/scenario.h"
#include "harness/runner/run_cell.h"
#include "harness/workload/workload.h"
#include "tests/unit/reference/reference.h"
#include "tests/unit/support/small_cells.h"

namespace headroom::export_weights_test {
namespace {

using ::testing::HasSubstr;

const char* const kResNet = "resnet(depth=18,width=8,batch=16,held_out_batches=4)";

Cell cell(const std::string& scenario, const std::string& pruning = "none",
          const std::string& device = testing::kSmallHost) {
  return testing::small_cell(kResNet, {{"scenario", scenario}, {"pruning", pruning}}, 4, device);
}

std::map<std::string, double> figures(const std::string& scenario,
                                      const std::string& pruning = "none") {
  const Sample sample = run_cell(cell(scenario, pruning), 5, "");
  EXPECT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  return sample.figures;
}

TEST(Int8Weights, are_off_by_half_a_step_at_most_and_use_the_whole_range_of_each_row) {
  std::mt19937_64 random(testing::test_seed());
  std::normal_distribution<float> normal;
  for (int round = 0; round < 20; ++round) {
    const std::size_t rows = 1 + random() % 20, columns = 1 + random() % 50;
    std::vector<float> weights(rows * columns);
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] = normal(random) * std::ldexp(1.0F, static_cast<int>(i / columns % 9) - 4);
    const Int8Rows rounded = quantise(weights, rows);
    for (std::size_t row = 0; row < rows; ++row) {
      int largest = 0;
      for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
        largest = std::max(largest, std::abs(int{rounded.numbers[i]}));
        ASSERT_LE(std::abs(rounded.at(i) - weights[i]), 0.5001F * rounded.scales[row]);
      }
      EXPECT_EQ(largest, 127);
    }
  }
}

TEST(Int8Weights, of_a_row_of_zeros_are_zeros) {
  const std::vector<float> zeros(6);
  const Int8Rows rounded = quantise(zeros, 2);
  for (std::size_t i = 0; i < zeros.size(); ++i) EXPECT_EQ(rounded.at(i), 0);
}

TEST(ExportWeights, counts_what_inference_reads_and_nothing_else) {
  const Program inference = *make_workload(Spec::parse(kResNet))->evaluation();
  double fp32 = 0, int8 = 0;
  for (const Value& value : inference.values) {
    if (!value.persistent) continue;
    const auto count = static_cast<double>(element_count(value.shape));
    const bool rounded = value.role == Role::weight && value.shape.size() >= 2;
    fp32 += 4 * count;
    int8 += rounded ? count + 4 * static_cast<double>(value.shape[0]) : 4 * count;
  }
  EXPECT_EQ(figures("export_weights").at("artifact_bytes"), fp32);
  EXPECT_EQ(figures("export_weights", "magnitude(sparsity=0.9)").at("artifact_bytes"), fp32)
      << "zeros take as many bytes as other numbers, and masks are left behind";
  EXPECT_EQ(figures("export_weights(form=int8)").at("artifact_bytes"), int8);
}

TEST(ExportWeights, packs_zeros_into_fewer_bytes_only_where_it_compresses) {
  const double dense = figures("export_weights").at("compressed_bytes");
  const double pruned = figures("export_weights", "magnitude(sparsity=0.9)").at("compressed_bytes");
  EXPECT_LT(pruned, dense / 2);
}

TEST(ExportWeights, scores_the_weights_it_hands_over) {
  Cell trained = cell("train");
  const double accuracy = run_cell(trained, 5, "").held_out_accuracy.value();
  EXPECT_EQ(figures("export_weights").at("held_out_accuracy"), accuracy);
  const double rounded = figures("export_weights(form=int8)").at("held_out_accuracy");
  EXPECT_NEAR(rounded, accuracy, 0.1) << "of 64 images";
}

TEST(ExportWeights, says_what_it_lacks_and_refuses_words_it_does_not_know) {
  const Sample simulated = run_cell(cell("export_weights", "none", "meta(capacity=1GiB)"), 5, "");
  EXPECT_EQ(simulated.status, SampleStatus::unsupported);
  EXPECT_THAT(simulated.reason, HasSubstr("computes nothing: take host"));
  Cell unscored = cell("export_weights");
  set_axis(unscored, "workload", "gan(batch=4,latent=8,width=4)");
  const Sample none = run_cell(unscored, 5, "");
  EXPECT_EQ(none.status, SampleStatus::unsupported);
  EXPECT_THAT(none.reason, HasSubstr("scores held-out batches"));
  EXPECT_THROW(check_scenario(Spec::parse("export_weights(form=int4)")), InputError);
  EXPECT_THROW(check_scenario(Spec::parse("export_weights(compress=zstd)")), InputError);
}

}  // namespace
}  // namespace headroom::export_weights_test
