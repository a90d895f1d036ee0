#include "workloads/lengths.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "workloads/choice.h"

namespace headroom {
namespace {

enum class Lengths { padded, bucketed, ragged };

// A shuffle with the same result on every standard library, unlike std::shuffle.
template <typename T>
void shuffle_by_seed(std::vector<T>& list, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random() % i]);
}

std::vector<std::int64_t> quarters(std::int64_t longest) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t part = 4; part > 0; --part) lengths.push_back(longest * part / 4);
  return lengths;
}

std::vector<std::int64_t> drawn(std::int64_t longest) {
  constexpr std::size_t kLengths = 16;
  const std::int64_t shortest = longest / 4;
  std::vector<std::int64_t> others(static_cast<std::size_t>(longest - shortest));
  std::iota(others.begin(), others.end(), shortest);
  shuffle_by_seed(others, 2);
  others.resize(std::min(others.size(), kLengths - 1));
  others.insert(others.begin(), longest);
  return others;
}

}  // namespace

std::vector<std::int64_t> read_lengths(const Spec& spec, std::int64_t longest, std::int64_t least) {
  const auto lengths = chosen<Lengths>(
      spec, "lengths", "padded",
      {{"padded", Lengths::padded}, {"bucketed", Lengths::bucketed}, {"ragged", Lengths::ragged}});
  if (lengths == Lengths::padded) return {longest};
  if (longest / 4 < least)
    throw InputError(
        fmt::format("{}: the shortest batch could be {} long; use a sequence of at least {}",
                    spec.to_string(), longest / 4, 4 * least));
  return lengths == Lengths::bucketed ? quarters(longest) : drawn(longest);
}

std::vector<std::size_t> length_cycle(std::size_t shapes) {
  if (shapes == 1) return {0};
  constexpr std::size_t kTurns = 4;
  std::vector<std::size_t> cycle;
  for (std::size_t i = 0; i < kTurns * shapes; ++i) cycle.push_back(i % shapes);
  shuffle_by_seed(cycle, 1);
  return cycle;
}

}  // namespace headroom
