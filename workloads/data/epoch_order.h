// The order of images in an epoch: a seeded permutation, different in each epoch.
#pragma once

#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace headroom {

// Fisher–Yates, the same on every standard library (std::shuffle is not).
template <typename T>
void shuffle(std::vector<T>& items, std::mt19937_64& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random() % i]);
}

class EpochOrder {
 public:
  // `random` may be in an advanced state, after draws for labels.
  EpochOrder(std::int64_t images, std::mt19937_64 random)
      : order_(static_cast<std::size_t>(images)), random_(random) {
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
  }

  const std::vector<std::int64_t>& next() {
    shuffle(order_, random_);
    return order_;
  }

 private:
  std::vector<std::int64_t> order_;
  std::mt19937_64 random_;
};

}  // namespace headroom
