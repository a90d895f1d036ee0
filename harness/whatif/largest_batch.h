// Searches for the largest batch that fits, when trying one batch is cheap and trying all is not.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace headroom {

using BatchFits = std::function<bool(std::int64_t batch)>;

// Returns the largest batch that fits, provided that no batch fits above one that does not. This
// holds for live bytes; no strategy guarantees it. Doubles or halves from `start`, then bisects. 0:
// none fits.
std::int64_t find_last_batch(std::int64_t start, const BatchFits& fits);

struct LargestBatch {
  std::int64_t batch = 0;  // fits, and batch + 1 does not or is beyond the bound; 0: none found
  int tried = 0;
};

// Searches 1 … bound when a larger batch may fit although a smaller one does not: goes down from
// the bound by 1, 2, 4, … until one fits, then bisects between that one and the last that did not.
LargestBatch find_largest_batch(std::int64_t bound, const BatchFits& fits);

struct BatchSearch {
  std::int64_t largest = 0;         // of all tried; the next one does not fit; 0: none found
  std::vector<std::int64_t> holes;  // batches tried that did not fit although a larger one does
  int tried = 0;
};

// Searches like find_largest_batch, and also tries `points` batches evenly spaced from 1 to the
// bound (all of them if there are no more), to find holes that bisection misses.
BatchSearch search_batches(std::int64_t bound, int points, const BatchFits& fits);

}  // namespace headroom
