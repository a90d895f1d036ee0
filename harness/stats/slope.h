// The slope of a series with jumps, spikes and autocorrelation: the Theil–Sen estimate with
// Kendall's exact interval, on medians of blocks. Sources: Theil 1950, Proc. KNAW 53:386; Sen 1968,
// JASA 63:1379 (interval); Kendall 1938, Biometrika 30:81 (its distribution).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "harness/stats/paired.h"

namespace headroom {

// `at` is strictly ascending; `at` and `values` have the same length.
struct Series {
  std::vector<double> at;
  std::vector<double> values;

  std::size_t size() const { return at.size(); }
  Series part(std::size_t begin, std::size_t end) const;
};
// Throws Error unless `at` is strictly ascending, the lengths match and all values are finite.
void check_series(const Series& series);

// P(Q ≤ discordant) for the number of discordant pairs among n values in random order.
double kendall_cdf(std::size_t n, long discordant);

// The median of the slopes of all pairs. Throws Error for fewer than two points; O(n²) memory.
double theil_sen(const Series& series);

// Sen's interval: the slopes that Kendall's test does not reject, exact for independent noise of
// any distribution. Infinite when there are too few points for the level.
Interval theil_sen_interval(const Series& series, double level);

// Medians of `count` contiguous blocks of nearly equal size, at the mean positions of the blocks.
Series block_medians(const Series& series, std::size_t count);
// Index of the first point of this block when `size` points are split into `count` blocks.
std::size_t block_begin(std::size_t size, std::size_t count, std::size_t block);

// First-order autocorrelation of the residuals of a Theil–Sen line; 0 when all residuals are 0.
double residual_autocorrelation(const Series& series);

}  // namespace headroom
