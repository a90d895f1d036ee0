// Sparse storage of weights: the round trip is exact, and bytes follow from the definition of each
// format.
#include "bench/scenarios/sparse_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "harness/base/error.h"
#include "harness/plan/axes.h"
#include "harness/runner/run_cell.h"
#include "harness/workload/workload.h"
#include "tests/unit/reference/reference.h"

namespace headroom::sparse_weights_test {
namespace {

using ::testing::HasSubstr;

const SparseForm kForms[] = {SparseForm::csr, SparseForm::bitmap, SparseForm::two_of_four};

struct Weights {
  Shape shape;
  std::vector<float> numbers;

  std::size_t rows() const { return static_cast<std::size_t>(shape[0]); }
  std::size_t columns() const { return numbers.size() / rows(); }
  std::size_t nonzero() const {
    return numbers.size() -
           static_cast<std::size_t>(std::count(numbers.begin(), numbers.end(), 0.0F));
  }
};

// Includes zeros of both signs, as a mask leaves them.
Weights random_weights(std::mt19937_64& random) {
  const auto size = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
  };
  Weights weights{.shape = {size(12), 4 * size(6)}, .numbers = {}};
  if (random() % 2 == 0) weights.shape = {size(8), 4 * size(4), size(3), size(3)};
  std::normal_distribution<float> normal;
  const auto sparsity = static_cast<double>(random() % 5) / 4;
  std::bernoulli_distribution zero(sparsity);
  for (std::int64_t i = element_count(weights.shape); i > 0; --i)
    weights.numbers.push_back(normal(random) * (zero(random) ? 0.0F : 1.0F));
  return weights;
}

// Zeroes two random elements of every four along the second dimension.
void leave_two_of_four(Weights& weights, std::mt19937_64& random) {
  const auto columns = static_cast<std::size_t>(weights.shape[1]);
  const std::size_t inner = weights.columns() / columns;
  for (std::size_t row = 0; row < weights.rows(); ++row)
    for (std::size_t first = 0; first < columns; first += 4)
      for (std::size_t i = 0; i < inner; ++i) {
        std::size_t members[4] = {0, 1, 2, 3};
        std::shuffle(members, members + 4, random);
        for (const std::size_t member : {members[0], members[1]})
          weights.numbers[(row * columns + first + member) * inner + i] *= 0.0F;
      }
}

TEST(SparseWeights, come_back_bit_for_bit_and_take_the_bytes_they_should) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 60; ++round)
    for (const SparseForm form : kForms) {
      Weights weights = random_weights(random);
      if (form == SparseForm::two_of_four) leave_two_of_four(weights, random);
      ASSERT_TRUE(fits(form, weights.shape));
      const auto packed = pack(form, weights.numbers, weights.shape);
      ASSERT_TRUE(packed.has_value());
      EXPECT_EQ(packed->size(), packed_bytes(form, weights.shape, weights.nonzero()));
      const std::vector<float> again = unpack(form, *packed, weights.shape);
      ASSERT_EQ(again.size(), weights.numbers.size());
      for (std::size_t i = 0; i < again.size(); ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(again[i]),
                  weights.numbers[i] == 0 ? 0U : std::bit_cast<std::uint32_t>(weights.numbers[i]));
    }
}

TEST(SparseWeights, with_three_numbers_in_a_group_of_four_are_no_two_of_four) {
  const Shape shape = {1, 8};
  EXPECT_TRUE(pack(SparseForm::two_of_four, std::vector<float>{1, 0, 2, 0, 0, 0, 0, 3}, shape));
  EXPECT_FALSE(pack(SparseForm::two_of_four, std::vector<float>{1, 0, 2, 0, 4, 5, 0, 3}, shape));
  EXPECT_FALSE(fits(SparseForm::two_of_four, {8, 6}));
  EXPECT_FALSE(fits(SparseForm::csr, {8}));
}

// Reads the bytes as cuSPARSE's documentation of CSR describes them, without unpack().
TEST(SparseWeights, in_csr_multiply_as_dense_ones_do) {
  std::mt19937_64 random(testing::test_seed());
  std::normal_distribution<float> normal;
  for (int round = 0; round < 20; ++round) {
    const Weights weights = random_weights(random);
    const auto packed = *pack(SparseForm::csr, weights.numbers, weights.shape);
    const std::size_t numbers = weights.nonzero();
    std::vector<float> values(numbers);
    std::vector<std::int32_t> columns(numbers), starts(weights.rows() + 1);
    const std::byte* at = packed.data();
    const auto take = [&](auto& into) {
      const std::size_t bytes = into.size() * 4;
      if (bytes > 0) std::memcpy(into.data(), at, bytes);
      at += bytes;
    };
    take(values);
    take(columns);
    take(starts);
    ASSERT_EQ(at, packed.data() + packed.size());
    std::vector<double> x(weights.columns());
    for (double& one : x) one = normal(random);
    for (std::size_t row = 0; row < weights.rows(); ++row) {
      double dense = 0, sparse = 0;
      for (std::size_t column = 0; column < x.size(); ++column)
        dense += static_cast<double>(weights.numbers[row * x.size() + column]) * x[column];
      for (std::int32_t i = starts[row]; i < starts[row + 1]; ++i) {
        const auto place = static_cast<std::size_t>(i);
        sparse += static_cast<double>(values[place]) * x[static_cast<std::size_t>(columns[place])];
      }
      EXPECT_EQ(sparse, dense);
    }
  }
}

TEST(SparseWeights, pay_from_the_sparsity_on_that_is_called_their_break_even) {
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 30; ++round) {
    const Shape shape = random_weights(random).shape;
    const auto count = static_cast<std::size_t>(element_count(shape));
    for (const SparseForm form : {SparseForm::csr, SparseForm::bitmap}) {
      const double even = break_even_sparsity(form, std::vector<Shape>{shape}).value();
      for (std::size_t numbers = 0; numbers <= count; ++numbers) {
        const double sparsity = 1 - static_cast<double>(numbers) / static_cast<double>(count);
        if (std::abs(sparsity - even) < 1e-9) continue;
        EXPECT_EQ(packed_bytes(form, shape, numbers) < 4 * count, sparsity > even)
            << to_string(shape) << " " << numbers;
      }
    }
  }
  const std::vector<Shape> shapes = {{1024, 1024}};
  EXPECT_DOUBLE_EQ(break_even_sparsity(SparseForm::bitmap, shapes).value(), 1.0 / 32);
  EXPECT_NEAR(break_even_sparsity(SparseForm::csr, shapes).value(), 0.5, 1e-3);
  EXPECT_EQ(break_even_sparsity(SparseForm::two_of_four, shapes), std::nullopt);
}

TEST(SparseWeights, that_are_cut_off_are_refused) {
  std::mt19937_64 random(testing::test_seed());
  for (const SparseForm form : kForms)
    for (int round = 0; round < 20; ++round) {
      Weights weights = random_weights(random);
      if (form == SparseForm::two_of_four) leave_two_of_four(weights, random);
      const auto packed = *pack(form, weights.numbers, weights.shape);
      const std::size_t left = random() % packed.size();
      EXPECT_THROW(unpack(form, std::span(packed).first(left), weights.shape), Error);
    }
}

const char* const kResNet = "resnet(depth=18,width=8,batch=16,held_out_batches=4)";

Sample exported(const std::string& scenario, const std::string& pruning) {
  Cell cell{.workload = Spec::parse(kResNet),
            .device = Spec::parse("host(capacity=1GiB)"),
            .rules = "onednn",
            .allocator = Spec::parse("bfc(growth=on)"),
            .warmup_steps = 1,
            .measured_steps = 3};
  set_axis(cell, "scenario", scenario);
  set_axis(cell, "pruning", pruning);
  return run_cell(cell, 5, "");
}

// Computed from the workload and the definition of the format.
Bytes bytes_of_artifact(SparseForm form, double sparsity) {
  Bytes sum = 0;
  const Program inference = *make_workload(Spec::parse(kResNet))->evaluation();
  for (const Value& value : inference.values) {
    if (!value.persistent) continue;
    const auto count = static_cast<std::size_t>(element_count(value.shape));
    const bool sparse = value.role == Role::weight && fits(form, value.shape);
    const auto zeros = static_cast<std::size_t>(std::lround(sparsity * static_cast<double>(count)));
    sum += sparse ? packed_bytes(form, value.shape, count - zeros) : 4 * count;
  }
  return sum;
}

TEST(SparseWeights, of_a_pruned_network_are_handed_over_in_the_bytes_counted_and_score_the_same) {
  const Sample dense = exported("export_weights", "magnitude(sparsity=0.9)");
  for (const auto& [name, form] : std::map<std::string, SparseForm>{
           {"csr", SparseForm::csr}, {"bitmap", SparseForm::bitmap}}) {
    const Sample sample = exported("export_weights(form=" + name + ")", "magnitude(sparsity=0.9)");
    ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
    const auto figure = [&](const char* key) { return sample.figures.at(key); };
    EXPECT_EQ(figure("artifact_bytes"), static_cast<double>(bytes_of_artifact(form, 0.9)));
    EXPECT_NEAR(figure("sparsity"), 0.9, 1e-3);
    EXPECT_GT(figure("sparsity"), figure("break_even_sparsity"));
    EXPECT_LT(figure("artifact_bytes"), dense.figures.at("artifact_bytes"));
    EXPECT_EQ(figure("held_out_accuracy"), dense.figures.at("held_out_accuracy"));
  }
}

TEST(SparseWeights, in_two_of_four_take_17_bytes_for_32) {
  const Sample sample = exported("export_weights(form=two_of_four)", "two_of_four");
  ASSERT_EQ(sample.status, SampleStatus::ok) << sample.reason;
  const double dense = exported("export_weights", "two_of_four").figures.at("artifact_bytes");
  EXPECT_EQ(dense - sample.figures.at("artifact_bytes"),
            sample.figures.at("sparse_dense_bytes") * 15 / 32);
  EXPECT_NEAR(sample.figures.at("sparsity"), 0.5, 1e-6);
  EXPECT_FALSE(sample.figures.contains("break_even_sparsity"));
}

TEST(SparseWeights, that_nobody_pruned_are_larger_in_csr_and_no_two_of_four) {
  const Sample csr = exported("export_weights(form=csr)", "none");
  ASSERT_EQ(csr.status, SampleStatus::ok) << csr.reason;
  EXPECT_GT(csr.figures.at("artifact_bytes"), csr.figures.at("sparse_dense_bytes") * 1.9);
  const Sample groups = exported("export_weights(form=two_of_four)", "none");
  EXPECT_EQ(groups.status, SampleStatus::invalid);
  EXPECT_THAT(groups.reason, HasSubstr("no weight can be stored in this form"));
}

}  // namespace
}  // namespace headroom::sparse_weights_test
