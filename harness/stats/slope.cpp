#include "harness/stats/slope.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/base/error.h"

namespace headroom {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::vector<double> pairwise_slopes(const Series& series) {
  std::vector<double> slopes;
  slopes.reserve(series.size() * (series.size() - 1) / 2);
  for (std::size_t i = 0; i < series.size(); ++i)
    for (std::size_t j = i + 1; j < series.size(); ++j)
      slopes.push_back((series.values[j] - series.values[i]) / (series.at[j] - series.at[i]));
  return slopes;
}

// P(Q = 0), P(Q = 1), …: the i-th value is discordant with 0 … i − 1 of the earlier ones, each
// count equally likely.
std::vector<double> discordance_probabilities(std::size_t n) {
  std::vector<double> probability = {1};
  for (std::size_t i = 2; i <= n; ++i) {
    std::vector<double> next(probability.size() + i - 1, 0.0);
    double window = 0;
    for (std::size_t q = 0; q < next.size(); ++q) {
      if (q < probability.size()) window += probability[q];
      if (q >= i) window -= probability[q - i];
      next[q] = window / static_cast<double>(i);
    }
    probability = std::move(next);
  }
  return probability;
}

}  // namespace

Series Series::part(std::size_t begin, std::size_t end) const {
  const auto from = static_cast<std::ptrdiff_t>(begin);
  const auto to = static_cast<std::ptrdiff_t>(end);
  return {{at.begin() + from, at.begin() + to}, {values.begin() + from, values.begin() + to}};
}

void check_series(const Series& series) {
  if (series.at.size() != series.values.size())
    throw Error("a series needs as many positions as values");
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(series.at.begin(), series.at.end(), is_finite) ||
      !std::all_of(series.values.begin(), series.values.end(), is_finite))
    throw Error("a series has a position or value that is not finite");
  if (std::adjacent_find(series.at.begin(), series.at.end(), std::greater_equal<>()) !=
      series.at.end())
    throw Error("the positions of a series do not ascend");
}

double kendall_cdf(std::size_t n, long discordant) {
  if (discordant < 0) return 0;
  const std::vector<double> probability = discordance_probabilities(n);
  const auto count = std::min(static_cast<std::size_t>(discordant) + 1, probability.size());
  return std::accumulate(probability.begin(),
                         probability.begin() + static_cast<std::ptrdiff_t>(count), 0.0);
}

double theil_sen(const Series& series) {
  if (series.size() < 2) throw Error("a slope needs at least two points");
  return median(pairwise_slopes(series));
}

Interval theil_sen_interval(const Series& series, double level) {
  if (series.size() < 2) return {-kUnbounded, kUnbounded};
  const std::vector<double> probability = discordance_probabilities(series.size());
  double tail = 0;
  std::size_t in_tail = 0;  // number of values of Q in the tail, and of slopes cut at each end
  while (in_tail < probability.size() && tail + probability[in_tail] <= (1 - level) / 2)
    tail += probability[in_tail++];
  if (in_tail == 0) return {-kUnbounded, kUnbounded};
  std::vector<double> slopes = pairwise_slopes(series);
  std::sort(slopes.begin(), slopes.end());
  return {slopes.at(in_tail - 1), slopes.at(slopes.size() - in_tail)};
}

std::size_t block_begin(std::size_t size, std::size_t count, std::size_t block) {
  return block * size / count;
}

Series block_medians(const Series& series, std::size_t count) {
  if (count >= series.size()) return series;
  Series blocks;
  for (std::size_t b = 0; b < count; ++b) {
    const Series run =
        series.part(block_begin(series.size(), count, b), block_begin(series.size(), count, b + 1));
    blocks.at.push_back(std::accumulate(run.at.begin(), run.at.end(), 0.0) /
                        static_cast<double>(run.size()));
    blocks.values.push_back(median(run.values));
  }
  return blocks;
}

double residual_autocorrelation(const Series& series) {
  const double slope = theil_sen(series);
  std::vector<double> residuals;
  for (std::size_t i = 0; i < series.size(); ++i)
    residuals.push_back(series.values[i] - slope * series.at[i]);
  const double mean = std::accumulate(residuals.begin(), residuals.end(), 0.0) /
                      static_cast<double>(residuals.size());
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    squares += (residuals[i] - mean) * (residuals[i] - mean);
    if (i > 0) products += (residuals[i] - mean) * (residuals[i - 1] - mean);
  }
  return squares > 0 ? products / squares : 0;
}

}  // namespace headroom
