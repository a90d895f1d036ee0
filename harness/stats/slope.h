// The slope of a series that jumps, spikes and remembers: Theil–Sen with Kendall's exact interval,
// on medians of blocks. Sources: Theil 1950, Proc. KNAW 53:386; Sen 1968, JASA 63:1379 (interval);
// Kendall 1938, Biometrika 30:81 (its distribution).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "harness/stats/paired.h"

namespace headroom {

// `at` ascends strictly; both of one length.
struct Series {
  std::vector<double> at;
  std::vector<double> values;

  std::size_t size() const { return at.size(); }
  Series part(std::size_t begin, std::size_t end) const;
};
// Throws Error unless `at` ascends strictly, both have one length and all is finite.
void check_series(const Series& series);

// P(Q ≤ discordant) for the number of discordant pairs among n values in random order.
double kendall_cdf(std::size_t n, long discordant);

// Median of the slopes of all pairs. Takes two points or more; O(n²) memory.
double theil_sen(const Series& series);

// Sen's interval: the slopes that Kendall's test does not reject, exact for independent noise of
// any distribution. Infinite when there are too few points for the level.
Interval theil_sen_interval(const Series& series, double level);

// Medians of `count` runs of neighbours, as even as can be, at their mean positions.
Series block_medians(const Series& series, std::size_t count);
// Where the block with this number begins, of `count` over `size` points.
std::size_t block_begin(std::size_t size, std::size_t count, std::size_t block);

// First-order autocorrelation of what a Theil–Sen line leaves; 0 when nothing is left.
double residual_autocorrelation(const Series& series);

}  // namespace headroom
