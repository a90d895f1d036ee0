// Choice among the convolution algorithms that cuDNN ranks, tested on made-up rankings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "harness/device/cuda/module/kernels/choose_algorithm.h"
#include "tests/unit/reference/reference.h"

namespace headroom::cuda {
namespace {

constexpr RankedAlgorithm kFine = {true, true, Instructions::fma};

std::optional<std::size_t> chosen(const std::vector<RankedAlgorithm>& ranked,
                                  const std::vector<std::optional<Bytes>>& workspaces,
                                  Arithmetic arithmetic = Arithmetic::f32,
                                  std::optional<Bytes> limit = std::nullopt) {
  const auto choice =
      choose_algorithm(ranked, arithmetic, limit, [&](std::size_t i) { return workspaces.at(i); });
  if (!choice) return std::nullopt;
  EXPECT_EQ(choice->workspace, workspaces.at(choice->index));
  return choice->index;
}

TEST(ChosenAlgorithm, is_the_first_that_runs_and_gives_the_same_bits_every_time) {
  EXPECT_EQ(
      chosen({{false, true, Instructions::fma}, {true, false, Instructions::fma}, kFine, kFine},
             {1, 2, 3, 4}),
      2u);
}

TEST(ChosenAlgorithm, is_the_next_where_the_library_refuses_one_that_it_ranked) {
  EXPECT_EQ(chosen({kFine, kFine}, {std::nullopt, 7}), 1u);
}

TEST(ChosenAlgorithm, is_the_first_within_the_limit) {
  EXPECT_EQ(chosen({kFine, kFine, kFine}, {4097, 4096, 0}, Arithmetic::f32, 4096), 1u);
  EXPECT_EQ(chosen({kFine, kFine, kFine}, {4097, 4096, 0}, Arithmetic::f32, 0), 2u);
}

TEST(ChosenAlgorithm, is_none_where_none_will_do) {
  EXPECT_EQ(chosen({}, {}), std::nullopt);
  EXPECT_EQ(chosen({kFine}, {1}, Arithmetic::f32, 0), std::nullopt);
  EXPECT_EQ(chosen({{true, false, Instructions::fma}}, {0}), std::nullopt);
}

TEST(ChosenAlgorithm, uses_tensor_cores_only_where_f32_was_not_asked_for) {
  const std::vector<RankedAlgorithm> ranked = {{true, true, Instructions::tensor_converting},
                                               {true, true, Instructions::tensor},
                                               {true, true, Instructions::standard}};
  EXPECT_EQ(chosen(ranked, {0, 0, 0}, Arithmetic::f32), 2u);
  EXPECT_EQ(chosen(ranked, {0, 0, 0}, Arithmetic::tf32), 1u);
  EXPECT_EQ(chosen(ranked, {0, 0, 0}, Arithmetic::sixteen_bits), 1u);
  EXPECT_EQ(instructions_for(Arithmetic::f32), Instructions::fma);
}

// The library keeps the state of the algorithm that was queried last.
TEST(ChosenAlgorithm, is_the_last_whose_workspace_was_asked_for) {
  std::mt19937_64 random(headroom::testing::test_seed());
  for (int round = 0; round < 200; ++round) {
    std::vector<RankedAlgorithm> ranked(random() % 8);
    std::vector<Bytes> workspaces(ranked.size());
    for (RankedAlgorithm& one : ranked)
      one = {random() % 2 == 0, random() % 2 == 0, static_cast<Instructions>(random() % 4)};
    for (Bytes& bytes : workspaces) bytes = random() % 100;
    std::vector<std::size_t> asked;
    const auto choice =
        choose_algorithm(ranked, Arithmetic::tf32, 50, [&](std::size_t i) -> std::optional<Bytes> {
          asked.push_back(i);
          return workspaces[i];
        });
    if (choice) {
      EXPECT_EQ(asked.back(), choice->index);
    }
    EXPECT_TRUE(std::is_sorted(asked.begin(), asked.end()));
    for (const std::size_t i : asked) EXPECT_TRUE(ranked[i].runs && ranked[i].deterministic);
    if (!choice) {
      for (const std::size_t i : asked) EXPECT_GT(workspaces[i], 50u);
    }
  }
}

}  // namespace
}  // namespace headroom::cuda
