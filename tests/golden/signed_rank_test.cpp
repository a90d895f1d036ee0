// Against SciPy: signed_rank.csv, written by signed_rank.py.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/stats/paired.h"

namespace headroom {
namespace {

std::vector<std::vector<std::string>> rows_of(const std::string& kind) {
  std::ifstream file(std::string(GOLDEN_DIRECTORY) + "/signed_rank.csv");
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    if (row.at(0) == kind) rows.push_back(row);
  }
  return rows;
}

TEST(SignedRank, has_the_cumulative_distribution_scipy_has) {
  const auto rows = rows_of("cdf");
  ASSERT_GT(rows.size(), 60u);
  for (const auto& row : rows)
    EXPECT_NEAR(signed_rank_cdf(std::stoul(row[1]), std::stol(row[2])), std::stod(row[3]), 1e-14)
        << "n=" << row[1] << " k=" << row[2];
}

TEST(SignedRank, has_the_p_values_scipy_has) {
  const auto rows = rows_of("p");
  ASSERT_EQ(rows.size(), 7u);
  for (const auto& row : rows) {
    std::istringstream text(row[2]);
    const std::vector<double> differences{std::istream_iterator<double>(text), {}};
    EXPECT_NEAR(signed_rank_p_value(differences), std::stod(row[3]), 1e-12) << row[2];
  }
}

}  // namespace
}  // namespace headroom
