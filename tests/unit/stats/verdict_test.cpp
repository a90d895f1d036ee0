#include "harness/stats/verdict.h"

#include <gtest/gtest.h>

namespace headroom::verdict_test {
namespace {

Comparison between(Interval ci90, Interval ci95) {
  Comparison comparison;
  comparison.theta = (ci90.low + ci90.high) / 2;
  comparison.ci90 = ci90;
  comparison.ci95 = ci95;
  return comparison;
}

struct ChangeCase {
  Interval ci90, ci95;
  ChangeVerdict verdict;
};

TEST(ChangeVerdicts, are_each_reached_by_the_interval_made_for_it) {
  const double delta = 0.03;
  const std::vector<ChangeCase> cases = {
      {{0.045, 0.075}, {0.04, 0.08}, ChangeVerdict::worse},
      {{-0.075, -0.045}, {-0.08, -0.04}, ChangeVerdict::better},
      {{-0.01, 0.02}, {-0.015, 0.025}, ChangeVerdict::same},
      {{-0.01, 0.029}, {-0.02, 0.031}, ChangeVerdict::same},
      {{0.006, 0.019}, {0.005, 0.02}, ChangeVerdict::small},
      {{0.011, 0.05}, {0.01, 0.06}, ChangeVerdict::direction},
      {{-0.02, 0.06}, {-0.03, 0.07}, ChangeVerdict::inconclusive},
  };
  for (const auto& [ci90, ci95, verdict] : cases)
    EXPECT_EQ(judge_change(between(ci90, ci95), delta), verdict) << to_string(verdict);
}

struct ClaimCase {
  Interval ci90, ci95;
  ClaimVerdict verdict;
};

TEST(ClaimVerdicts, are_each_reached_by_the_interval_made_for_it) {
  const ClaimedEffect claimed{.value = 0.08, .tolerance = 0.04, .delta = 0.03};
  const std::vector<ClaimCase> cases = {
      {{0.06, 0.10}, {0.05, 0.11}, ClaimVerdict::reproduced},
      {{0.05, 0.11}, {0.01, 0.13}, ClaimVerdict::reproduced},
      {{0.034, 0.036}, {0.033, 0.037}, ClaimVerdict::weaker},
      {{0.15, 0.2}, {0.14, 0.21}, ClaimVerdict::stronger},
      {{0.036, 0.10}, {0.035, 0.12}, ClaimVerdict::direction_only},
      {{-0.01, 0.02}, {-0.02, 0.03}, ClaimVerdict::refuted},
      {{-0.10, -0.05}, {-0.11, -0.04}, ClaimVerdict::refuted},
      {{-0.01, 0.06}, {-0.02, 0.07}, ClaimVerdict::inconclusive},
      {{0.005, 0.035}, {0.001, 0.038}, ClaimVerdict::inconclusive},
  };
  for (const auto& [ci90, ci95, verdict] : cases)
    EXPECT_EQ(judge_claim(between(ci90, ci95), claimed), verdict)
        << to_string(verdict) << " [" << ci95.low << ", " << ci95.high << "]";
}

TEST(ClaimVerdicts, of_a_negative_effect_mirror_those_of_a_positive_one) {
  const ClaimedEffect claimed{.value = -0.08, .tolerance = 0.04, .delta = 0.03};
  EXPECT_EQ(judge_claim(between({-0.10, -0.06}, {-0.11, -0.05}), claimed),
            ClaimVerdict::reproduced);
  EXPECT_EQ(judge_claim(between({-0.2, -0.15}, {-0.21, -0.14}), claimed), ClaimVerdict::stronger);
  EXPECT_EQ(judge_claim(between({0.06, 0.10}, {0.05, 0.11}), claimed), ClaimVerdict::refuted);
}

TEST(ClaimVerdicts, of_a_bare_direction_ask_for_nothing_but_the_direction) {
  const ClaimedEffect claimed{.value = {}, .direction = -1, .delta = 0.01};
  EXPECT_EQ(judge_claim(between({-0.5, -0.1}, {-0.6, -0.05}), claimed), ClaimVerdict::reproduced);
  EXPECT_EQ(judge_claim(between({-0.005, 0.005}, {-0.02, 0.02}), claimed), ClaimVerdict::refuted);
  EXPECT_EQ(judge_claim(between({0.1, 0.5}, {0.05, 0.6}), claimed), ClaimVerdict::refuted);
  EXPECT_EQ(judge_claim(between({-0.5, 0.1}, {-0.6, 0.2}), claimed), ClaimVerdict::inconclusive);
}

TEST(ClaimVerdicts, of_a_bound_go_by_the_one_sided_end) {
  const ClaimedBound at_least{.at_least = 1.0, .at_most = {}};
  EXPECT_EQ(judge_bound(between({1.0, 2.0}, {0.9, 2.1}), at_least), ClaimVerdict::reproduced);
  EXPECT_EQ(judge_bound(between({0.2, 0.9}, {0.1, 1.1}), at_least), ClaimVerdict::refuted);
  EXPECT_EQ(judge_bound(between({0.9, 1.5}, {0.8, 1.6}), at_least), ClaimVerdict::inconclusive);
  const ClaimedBound at_most{.at_least = {}, .at_most = 1.0};
  EXPECT_EQ(judge_bound(between({0.2, 0.9}, {0.1, 1.1}), at_most), ClaimVerdict::reproduced);
  EXPECT_EQ(judge_bound(between({1.1, 1.5}, {0.9, 1.6}), at_most), ClaimVerdict::refuted);
}

TEST(ClaimVerdicts, of_exact_figures_need_one_comparison) {
  const ClaimedEffect claimed{.value = -0.9676, .tolerance = 0.0968, .delta = 0.01};
  EXPECT_EQ(judge_claim(compare_exact(-0.95), claimed), ClaimVerdict::reproduced);
  EXPECT_EQ(judge_claim(compare_exact(-2.0), claimed), ClaimVerdict::stronger);
  EXPECT_EQ(judge_claim(compare_exact(-0.2), claimed), ClaimVerdict::weaker);
  EXPECT_EQ(judge_claim(compare_exact(0), claimed), ClaimVerdict::refuted);
  EXPECT_EQ(judge_change(compare_exact(0), 0.01), ChangeVerdict::same);
}

}  // namespace
}  // namespace headroom::verdict_test
