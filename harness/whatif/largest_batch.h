// How large a batch can be, where trying one is cheap and trying all is not.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace headroom {

using BatchFits = std::function<bool(std::int64_t batch)>;

// The largest batch that fits, where larger ones never fit once one does not (live bytes, but no
// strategy promises that). By doubling and halving from `start`, then bisection. 0: none fits.
std::int64_t find_last_batch(std::int64_t start, const BatchFits& fits);

struct LargestBatch {
  std::int64_t batch = 0;  // fits, and batch + 1 does not or is beyond the bound; 0: none found
  int tried = 0;
};

// Of 1 … bound, where a larger batch may fit although a smaller one does not: from the bound down
// by 1, 2, 4, … until one fits, then bisection between that one and the last that did not.
LargestBatch find_largest_batch(std::int64_t bound, const BatchFits& fits);

struct BatchSearch {
  std::int64_t largest = 0;         // of all tried, and the next one does not fit; 0: none found
  std::vector<std::int64_t> holes;  // tried and did not fit, although a larger one does
  int tried = 0;
};

// As find_largest_batch, and besides `points` batches evenly from 1 to the bound, each where there
// are no more: what a search by halves alone passes over.
BatchSearch search_batches(std::int64_t bound, int points, const BatchFits& fits);

}  // namespace headroom
