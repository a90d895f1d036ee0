// Compares with NumPy and SciPy: change_points.csv, written by change_points.py.
#include "harness/stats/change_points.h"
#include "tests/golden/golden_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace headroom {
namespace {

template <typename Number>
std::vector<Number> numbers_in(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<Number>(stream), {}};
}

TEST(ChangePoints, have_the_divergence_and_the_t_test_that_scipy_has) {
  const auto rows = golden_rows("change_points.csv", "split");
  ASSERT_EQ(rows.size(), 14u);
  for (const auto& row : rows) {
    const auto values = numbers_in<double>(row[1]);
    const std::span<const double> left = std::span(values).first(std::stoul(row[2]));
    const std::span<const double> right = std::span(values).subspan(left.size());
    EXPECT_NEAR(energy_divergence(left, right), std::stod(row[3]), 1e-12) << row[1];
    EXPECT_NEAR(t_test_p_value(left, right), std::stod(row[4]), 1e-12) << row[1];
  }
}

TEST(ChangePoints, are_where_a_search_over_every_split_finds_them) {
  const auto rows = golden_rows("change_points.csv", "points");
  ASSERT_EQ(rows.size(), 20u);
  for (const auto& row : rows)
    EXPECT_THAT(change_points(numbers_in<double>(row[1])),
                ::testing::ElementsAreArray(numbers_in<std::size_t>(row.size() > 2 ? row[2] : "")))
        << row[1];
}

}  // namespace
}  // namespace headroom
