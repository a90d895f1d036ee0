#include "harness/stats/multiplicity.h"

#include <algorithm>
#include <numeric>

namespace headroom {
namespace {

std::vector<std::size_t> order_of(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  return order;
}

}  // namespace

std::vector<double> holm_adjusted(const std::vector<double>& p) {
  const auto order = order_of(p);
  std::vector<double> adjusted(p.size());
  double highest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const double factor = static_cast<double>(p.size() - rank);
    highest = std::max(highest, std::min(1.0, factor * p[order[rank]]));
    adjusted[order[rank]] = highest;
  }
  return adjusted;
}

std::vector<double> benjamini_hochberg_adjusted(const std::vector<double>& p) {
  const auto order = order_of(p);
  std::vector<double> adjusted(p.size());
  double lowest = 1;
  for (std::size_t rank = order.size(); rank > 0; --rank) {
    const double factor = static_cast<double>(p.size()) / static_cast<double>(rank);
    lowest = std::min(lowest, factor * p[order[rank - 1]]);
    adjusted[order[rank - 1]] = lowest;
  }
  return adjusted;
}

std::vector<double> holm_levels(const std::vector<double>& p, double alpha) {
  const auto order = order_of(p);
  std::vector<double> levels(p.size());
  double level = 0;
  bool rejecting = true;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    if (rejecting) level = alpha / static_cast<double>(p.size() - rank);
    rejecting = rejecting && p[order[rank]] <= level;
    levels[order[rank]] = level;
  }
  return levels;
}

}  // namespace headroom
