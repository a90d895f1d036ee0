#include "harness/whatif/largest_batch.h"

#include <algorithm>
#include <map>

#include "harness/base/spec.h"

namespace headroom {
namespace {

constexpr std::int64_t kMostBatch = Spec::kMostWhole;  // parameters refuse larger numbers

// `fitting` fits or is 0, `failing` does not.
std::int64_t bisect(std::int64_t fitting, std::int64_t failing, const BatchFits& fits) {
  while (failing - fitting > 1) {
    const std::int64_t middle = fitting + (failing - fitting) / 2;
    (fits(middle) ? fitting : failing) = middle;
  }
  return fitting;
}

}  // namespace

std::int64_t find_last_batch(std::int64_t start, const BatchFits& fits) {
  std::int64_t fitting = 0;
  std::int64_t failing = start;
  while (failing <= kMostBatch && fits(failing)) {
    fitting = failing;
    failing = std::min(2 * failing, kMostBatch + 1);
  }
  return bisect(fitting, failing, fits);
}

LargestBatch find_largest_batch(std::int64_t bound, const BatchFits& fits) {
  LargestBatch result;
  const BatchFits counted = [&](std::int64_t batch) {
    ++result.tried;
    return fits(batch);
  };
  std::int64_t candidate = bound;
  std::int64_t failing = bound + 1;
  for (std::int64_t step = 1; candidate > 0 && !counted(candidate); step *= 2) {
    failing = candidate;
    candidate = candidate > 1 ? std::max<std::int64_t>(1, candidate - step) : 0;
  }
  result.batch = bisect(candidate, failing, counted);
  return result;
}

BatchSearch search_batches(std::int64_t bound, int points, const BatchFits& fits) {
  std::map<std::int64_t, bool> tried;
  const BatchFits remembered = [&](std::int64_t batch) {
    const auto [found, first] = tried.try_emplace(batch);
    if (first) found->second = fits(batch);
    return found->second;
  };
  find_largest_batch(bound, remembered);
  const std::int64_t on_grid = std::min<std::int64_t>(bound, points);
  for (std::int64_t i = 1; i <= on_grid; ++i) remembered(bound * i / on_grid);

  BatchSearch result;
  std::int64_t failing = bound + 1;
  for (auto at = tried.rbegin(); at != tried.rend() && result.largest == 0; ++at)
    (at->second ? result.largest : failing) = at->first;
  result.largest = bisect(result.largest, failing, remembered);
  for (const auto& [batch, fit] : tried)
    if (!fit && batch < result.largest) result.holes.push_back(batch);
  result.tried = static_cast<int>(tried.size());
  return result;
}

}  // namespace headroom
