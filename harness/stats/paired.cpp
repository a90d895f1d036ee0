#include "harness/stats/paired.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "harness/base/error.h"
#include "harness/stats/distributions.h"

namespace headroom {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> sorted_walsh_averages(const std::vector<double>& differences) {
  std::vector<double> walsh;
  walsh.reserve(differences.size() * (differences.size() + 1) / 2);
  for (std::size_t i = 0; i < differences.size(); ++i)
    for (std::size_t j = i; j < differences.size(); ++j)
      walsh.push_back((differences[i] + differences[j]) / 2);
  std::sort(walsh.begin(), walsh.end());
  return walsh;
}

// P(T⁺ = t): rank i joins the sum with probability one half, for i = 1 … n.
std::vector<double> signed_rank_probabilities(std::size_t n) {
  std::vector<double> probability(n * (n + 1) / 2 + 1, 0.0);
  probability[0] = 1;
  for (std::size_t rank = 1; rank <= n; ++rank) {
    for (std::size_t t = rank * (rank + 1) / 2 + 1; t-- > 0;)
      probability[t] = (probability[t] + (t >= rank ? probability[t - rank] : 0)) / 2;
  }
  return probability;
}

std::vector<double> signed_rank_cumulative(std::size_t n) {
  auto probability = signed_rank_probabilities(n);
  std::partial_sum(probability.begin(), probability.end(), probability.begin());
  return probability;
}

double standard_deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (n - 1));
}

double winsorised_standard_deviation(std::vector<double> values, double trim) {
  std::sort(values.begin(), values.end());
  const auto cut = static_cast<std::size_t>(trim * static_cast<double>(values.size()));
  for (std::size_t i = 0; i < cut; ++i) {
    values[i] = values[cut];
    values[values.size() - 1 - i] = values[values.size() - 1 - cut];
  }
  return standard_deviation(values);
}

}  // namespace

double hodges_lehmann(const std::vector<double>& differences) {
  if (differences.empty()) throw Error("no pairs to compare");
  const auto walsh = sorted_walsh_averages(differences);
  const std::size_t middle = walsh.size() / 2;
  return walsh.size() % 2 == 1 ? walsh[middle] : (walsh[middle - 1] + walsh[middle]) / 2;
}

double signed_rank_cdf(std::size_t n, long k) {
  if (k < 0) return 0;
  const auto cumulative = signed_rank_cumulative(n);
  return cumulative[std::min(static_cast<std::size_t>(k), cumulative.size() - 1)];
}

Interval signed_rank_interval(const std::vector<double>& differences, double level) {
  const double tail = (1 - level) / 2;
  const auto cumulative = signed_rank_cumulative(differences.size());
  // The number of values T⁺ = 0, 1, … in the tail, which is k + 1.
  const auto in_tail = static_cast<std::size_t>(
      std::upper_bound(cumulative.begin(), cumulative.end(), tail) - cumulative.begin());
  if (in_tail == 0 || differences.empty()) return {-kInfinity, kInfinity};
  const auto walsh = sorted_walsh_averages(differences);
  const std::size_t k = in_tail - 1;
  return {walsh.at(k), walsh.at(walsh.size() - k - 1)};
}

double signed_rank_p_value(const std::vector<double>& differences) {
  if (differences.empty()) return 1;
  const auto walsh = sorted_walsh_averages(differences);
  const auto not_above = std::count_if(walsh.begin(), walsh.end(), [](double w) { return w <= 0; });
  const auto not_below = std::count_if(walsh.begin(), walsh.end(), [](double w) { return w >= 0; });
  const auto extreme = static_cast<long>(std::min(not_above, not_below));
  return std::min(1.0, 2 * signed_rank_cdf(differences.size(), extreme));
}

Interval mean_interval(const std::vector<double>& values, double level) {
  if (values.size() < 2) return {-kInfinity, kInfinity};
  const double n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  const double half =
      student_t_quantile((1 + level) / 2, n - 1) * standard_deviation(values) / std::sqrt(n);
  return {mean - half, mean + half};
}

Comparison compare_pairs(const std::vector<double>& differences, std::size_t excluded,
                         double alpha) {
  Comparison comparison;
  comparison.theta = hodges_lehmann(differences);
  comparison.ci90 = signed_rank_interval(differences, 1 - 2 * alpha);
  comparison.ci95 = signed_rank_interval(differences, 1 - alpha);
  comparison.pairs = differences.size();
  comparison.excluded_pairs = excluded;
  comparison.sd = standard_deviation(differences);
  comparison.p = signed_rank_p_value(differences);
  comparison.mde = kInfinity;
  if (differences.size() > 1) {
    const double n = static_cast<double>(differences.size());
    comparison.mde = (student_t_quantile(1 - alpha / 2, n - 1) + student_t_quantile(0.8, n - 1)) *
                     comparison.sd / std::sqrt(n);
  }
  return comparison;
}

Comparison compare_exact(double difference) {
  Comparison comparison;
  comparison.theta = difference;
  comparison.ci90 = comparison.ci95 = {difference, difference};
  comparison.pairs = 1;
  comparison.p = difference == 0 ? 1 : 0;
  comparison.exact = true;
  return comparison;
}

std::size_t pilot_pairs(double alpha) {
  return std::max<std::size_t>(10, static_cast<std::size_t>(std::ceil(1 - std::log2(alpha))));
}

std::size_t pairs_needed(const std::vector<double>& pilot, double delta, double alpha) {
  if (pilot.size() < 2 || delta <= 0) return pilot.size();
  const double s = winsorised_standard_deviation(pilot, 0.2) / 0.6;
  const double t = student_t_quantile(1 - alpha, static_cast<double>(pilot.size()) - 1);
  const double n = std::ceil(std::pow(t * s / (delta / 2), 2));
  return std::max(pilot.size(), static_cast<std::size_t>(std::min(n, 1e9)));
}

}  // namespace headroom
