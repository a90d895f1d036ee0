// Compares with SciPy: signed_rank.csv, written by signed_rank.py.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "harness/stats/paired.h"
#include "tests/golden/golden_rows.h"

namespace headroom {
namespace {

TEST(SignedRank, has_the_cumulative_distribution_scipy_has) {
  const auto rows = golden_rows("signed_rank.csv", "cdf");
  ASSERT_GT(rows.size(), 60u);
  for (const auto& row : rows)
    EXPECT_NEAR(signed_rank_cdf(std::stoul(row[1]), std::stol(row[2])), std::stod(row[3]), 1e-14)
        << "n=" << row[1] << " k=" << row[2];
}

TEST(SignedRank, has_the_p_values_scipy_has) {
  const auto rows = golden_rows("signed_rank.csv", "p");
  ASSERT_EQ(rows.size(), 7u);
  for (const auto& row : rows) {
    std::istringstream text(row[2]);
    const std::vector<double> differences{std::istream_iterator<double>(text), {}};
    EXPECT_NEAR(signed_rank_p_value(differences), std::stod(row[3]), 1e-12) << row[2];
  }
}

}  // namespace
}  // namespace headroom
