#include "workloads/lengths.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "workloads/choice.h"

namespace headroom {

std::vector<std::int64_t> read_lengths(const Spec& spec, std::int64_t longest, std::int64_t least) {
  constexpr std::int64_t kBuckets = 4;
  const auto buckets =
      chosen<std::int64_t>(spec, "lengths", "padded", {{"padded", 1}, {"bucketed", kBuckets}});
  std::vector<std::int64_t> lengths;
  for (std::int64_t part = buckets; part > 0; --part) lengths.push_back(longest * part / buckets);
  if (lengths.back() < least)
    throw InputError(
        fmt::format("{}: the shortest bucket would be {}; take a sequence of {} at "
                    "least",
                    spec.to_string(), lengths.back(), buckets * least));
  return lengths;
}

std::vector<std::size_t> length_cycle(std::size_t shapes) {
  if (shapes == 1) return {0};
  constexpr std::size_t kTurns = 4;
  std::vector<std::size_t> cycle;
  for (std::size_t i = 0; i < kTurns * shapes; ++i) cycle.push_back(i % shapes);
  std::mt19937_64 random(1);
  for (std::size_t i = cycle.size(); i > 1; --i) std::swap(cycle[i - 1], cycle[random() % i]);
  return cycle;
}

}  // namespace headroom
