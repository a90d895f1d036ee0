// Compares with SciPy: comparison.csv, written by comparison.py.
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "harness/stats/paired.h"
#include "harness/stats/verdict.h"
#include "tests/golden/golden_rows.h"

namespace headroom {
namespace {

struct Row {
  std::vector<double> differences;
  std::vector<std::string> figures;
};

std::vector<Row> rows_of(const std::string& kind) {
  std::vector<Row> rows;
  for (const auto& row : golden_rows("comparison.csv", kind)) {
    std::istringstream text(row.at(1));
    rows.push_back({{std::istream_iterator<double>(text), {}}, {row.begin() + 2, row.end()}});
  }
  return rows;
}

TEST(Comparisons, have_the_intervals_that_scipys_test_does_not_reject) {
  const auto rows = rows_of("interval");
  ASSERT_EQ(rows.size(), 36u);
  for (const Row& row : rows) {
    const Interval interval = signed_rank_interval(row.differences, std::stod(row.figures[0]));
    EXPECT_NEAR(interval.low, std::stod(row.figures[1]), 1e-9);
    EXPECT_NEAR(interval.high, std::stod(row.figures[2]), 1e-9);
  }
}

TEST(Comparisons, state_the_minimum_detectable_effect_of_scipys_quantiles) {
  const auto rows = rows_of("mde");
  ASSERT_EQ(rows.size(), 18u);
  for (const Row& row : rows)
    EXPECT_NEAR(compare_pairs(row.differences, 0).mde, std::stod(row.figures[0]), 1e-9);
}

TEST(Comparisons, get_the_word_that_scipys_one_sided_tests_give) {
  const auto rows = rows_of("word");
  ASSERT_GT(rows.size(), 30u);
  for (const Row& row : rows)
    EXPECT_EQ(to_string(judge_change(compare_pairs(row.differences, 0), std::stod(row.figures[0]))),
              row.figures[1]);
}

TEST(Comparisons, ask_for_as_many_pairs_as_scipys_winsorised_deviation_does) {
  const auto rows = rows_of("pairs");
  ASSERT_EQ(rows.size(), 18u);
  for (const Row& row : rows)
    EXPECT_EQ(pairs_needed(row.differences, std::stod(row.figures[0])), std::stoul(row.figures[1]));
}

}  // namespace
}  // namespace headroom
