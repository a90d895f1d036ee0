#include "harness/stats/change_points.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/stats/distributions.h"

namespace headroom {
namespace {

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double squares_about_mean(std::span<const double> values) {
  const double center = mean(values);
  return std::accumulate(values.begin(), values.end(), 0.0, [&](double sum, double value) {
    return sum + (value - center) * (value - center);
  });
}

// Sums of |x_i − x_j| within and between the sides of a split.
struct DistanceSums {
  double left = 0;
  double right = 0;
  double between = 0;

  double divergence(std::size_t left_size, std::size_t right_size) const {
    const auto m = static_cast<double>(left_size);
    const auto n = static_cast<double>(right_size);
    return m * n / (m + n) *
           (2 * between / (m * n) - left / (m * (m - 1) / 2) - right / (n * (n - 1) / 2));
  }
};

double sum_of_distances(std::span<const double> from, double to) {
  return std::accumulate(from.begin(), from.end(), 0.0,
                         [=](double sum, double value) { return sum + std::abs(value - to); });
}

DistanceSums distance_sums(std::span<const double> left, std::span<const double> right) {
  DistanceSums sums;
  for (std::size_t i = 0; i < left.size(); ++i) {
    sums.left += sum_of_distances(left.first(i), left[i]);
    sums.between += sum_of_distances(right, left[i]);
  }
  for (std::size_t i = 0; i < right.size(); ++i)
    sums.right += sum_of_distances(right.first(i), right[i]);
  return sums;
}

// `values` must hold at least two levels of the shortest length. Moving one value to the left side
// takes one pass, so testing all splits is quadratic.
std::size_t best_split(std::span<const double> values) {
  std::size_t best = kShortestLevel;
  DistanceSums sums = distance_sums(values.first(best), values.subspan(best));
  double largest = sums.divergence(best, values.size() - best);
  for (std::size_t split = best + 1; split + kShortestLevel <= values.size(); ++split) {
    const double moved = values[split - 1];
    const double to_left = sum_of_distances(values.first(split - 1), moved);
    const double to_right = sum_of_distances(values.subspan(split), moved);
    sums.left += to_left;
    sums.right -= to_right;
    sums.between += to_right - to_left;
    const double divergence = sums.divergence(split, values.size() - split);
    if (divergence > largest) {
      largest = divergence;
      best = split;
    }
  }
  return best;
}

// When a bump is tested as everything before one point against everything after it, its two steps
// hide each other. Candidates therefore pass at a weaker level, and prune() then tests each one
// against its neighbouring levels only.
constexpr double kCandidateFactor = 10;

void collect(std::span<const double> values, std::size_t offset, double level,
             std::vector<std::size_t>& found) {
  if (values.size() < 2 * kShortestLevel) return;
  const std::size_t split = best_split(values);
  if (t_test_p_value(values.first(split), values.subspan(split)) >= level) return;
  collect(values.first(split), offset, level, found);
  found.push_back(offset + split);
  collect(values.subspan(split), offset + split, level, found);
}

// p-value of the test between the levels on both sides of starts[i].
double p_between(std::span<const double> values, const std::vector<std::size_t>& starts,
                 std::size_t i) {
  const std::size_t begin = i == 0 ? 0 : starts[i - 1];
  const std::size_t end = i + 1 == starts.size() ? values.size() : starts[i + 1];
  return t_test_p_value(values.subspan(begin, starts[i] - begin),
                        values.subspan(starts[i], end - starts[i]));
}

// Removes the weakest change point until every remaining one is significant between its
// neighbouring levels.
void prune(std::span<const double> values, double level, std::vector<std::size_t>& starts) {
  while (!starts.empty()) {
    std::size_t weakest = 0;
    double largest = -1;
    for (std::size_t i = 0; i < starts.size(); ++i)
      if (const double p = p_between(values, starts, i); p > largest) {
        largest = p;
        weakest = i;
      }
    if (largest < level) return;
    starts.erase(starts.begin() + static_cast<std::ptrdiff_t>(weakest));
  }
}

}  // namespace

double energy_divergence(std::span<const double> left, std::span<const double> right) {
  return distance_sums(left, right).divergence(left.size(), right.size());
}

double t_test_p_value(std::span<const double> left, std::span<const double> right) {
  const auto m = static_cast<double>(left.size());
  const auto n = static_cast<double>(right.size());
  const double difference = std::abs(mean(left) - mean(right));
  const double variance = (squares_about_mean(left) + squares_about_mean(right)) / (m + n - 2);
  if (variance == 0) return difference == 0 ? 1 : 0;
  return student_t_two_sided(difference / std::sqrt(variance * (1 / m + 1 / n)), m + n - 2);
}

std::vector<std::size_t> change_points(std::span<const double> values, double level) {
  std::vector<std::size_t> found;
  collect(values, 0, kCandidateFactor * level, found);
  prune(values, level, found);
  return found;
}

std::optional<LevelShift> latest_shift(std::span<const double> values) {
  const std::vector<std::size_t> starts = change_points(values);
  if (starts.empty()) return std::nullopt;
  const auto level = [&](std::size_t i) {
    const std::size_t begin = i == 0 ? 0 : starts[i - 1];
    return values.subspan(begin, (i == starts.size() ? values.size() : starts[i]) - begin);
  };
  std::size_t best = 0;
  for (std::size_t i = 1; i < starts.size(); ++i)
    if (mean(level(i)) < mean(level(best))) best = i;
  const double before = mean(level(best));
  const double after = mean(level(starts.size()));

  const double direction = after < before ? -1 : 1;
  const auto step_to = [&](std::size_t i) {
    return direction * (mean(level(i)) - mean(level(i - 1)));
  };
  std::size_t reached = best + 1;
  for (std::size_t i = reached + 1; i <= starts.size(); ++i)
    if (step_to(i) > step_to(reached)) reached = i;
  const auto places = static_cast<double>(values.size() - 2 * kShortestLevel + 1);
  return LevelShift{.since = starts[reached - 1],
                    .best = before,
                    .last = after,
                    .p = std::min(1.0, places * t_test_p_value(level(best), level(starts.size())))};
}

}  // namespace headroom
