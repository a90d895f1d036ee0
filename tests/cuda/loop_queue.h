// The queue of the CUDA device's own kernels without a GPU: plain loops in any order and grouping
// that a GPU may use, over memory that is invalid before it is written.
#pragma once

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>
#include <vector>

#include "harness/device/cuda/module/work/work.h"

namespace headroom::testing {

class LoopQueue {
 public:
  using Index = cuda::Index;

  // `unless` is the flag of a conditional op, or null.
  LoopQueue(std::uint64_t seed, const float* unless) : random_(seed), unless_(unless) {}

  template <typename T>
  T* scratch(Index count) {
    pieces_.emplace_back(static_cast<std::size_t>(count) * sizeof(T), std::byte{0xFF});
    return reinterpret_cast<T*>(pieces_.back().data());
  }

  // i → (step · i + start) mod count visits every i once.
  template <typename F>
  void for_each(Index count, F f) {
    if (unless_ != nullptr && *unless_ != 0) return;
    if (count == 0) return;
    const Index start = between(0, count - 1);
    Index step = between(1, count);
    while (std::gcd(step, count) != 1) step = between(1, count);
    for (Index i = 0; i < count; ++i) f((step * i + start) % count);
  }

  template <typename F>
  void for_each_by_table(Index count, F f) {
    for_each(count, f);
  }

  template <typename Value, typename Combine, typename T>
  void reduce(Index count, Value value, Combine combine, T initial, T* result) {
    *result = combined(count, value, combine, initial);
  }

  template <typename Value, typename Combine, typename T, typename Results>
  void reduce_rows(Index rows, Index width, Value value, Combine combine, T initial,
                   Results results) {
    for (Index r = 0; r < rows; ++r) {
      const T all = combined(
          width, [&](Index column) { return value(r, column); }, combine, initial);
      cuda::give(results, r, all);
    }
  }

  template <typename Value, typename Combine, typename T>
  void reduce_columns(Index groups, Index rows, Index columns, Value value, Combine combine,
                      T initial, T* results) {
    for (Index g = 0; g < groups; ++g) {
      const Index first = g * rows / groups, end = (g + 1) * rows / groups;
      for (Index c = 0; c < columns; ++c) {
        const auto of_column = value.of_column(c);
        results[c * groups + g] = combined(
            end - first, [&](Index r) { return of_column(first + r); }, combine, initial);
      }
    }
  }

  template <typename F>
  void for_each_by_column(Index rows, Index columns, F f) {
    for_each(rows * columns, [&](Index i) {
      const auto of_column = f.of_column(i % columns);
      of_column.write(i / columns, of_column.read(i / columns));
    });
  }

  void sort(const float* keys, float* sorted, Index count) {
    std::copy_n(keys, count, sorted);
    std::sort(sorted, sorted + count);
  }

  void sort_pairs(const std::int32_t* keys, std::int32_t* sorted_keys, const std::int32_t* values,
                  std::int32_t* sorted_values, Index count) {
    std::vector<Index> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return keys[a] < keys[b]; });
    for (const Index from : order) {
      *sorted_keys++ = keys[from];
      *sorted_values++ = values[from];
    }
  }

 private:
  Index between(Index low, Index high) {
    return std::uniform_int_distribution<Index>(low, high)(random_);
  }

  // Combines groups of random lengths, the later ones first. Those of another type are short, as on
  // the GPU.
  template <typename Value, typename Combine, typename T>
  T combined(Index end, Value value, Combine combine, T initial) {
    constexpr Index kLongest = std::is_same_v<decltype(value(Index{})), T> ? 64 : 4;
    T all = initial;
    while (end > 0) {
      const Index first = std::max(Index{0}, end - between(1, kLongest));
      auto group = value(first);
      for (Index i = first + 1; i < end; ++i) group = combine(group, value(i));
      all = combine(all, group);
      end = first;
    }
    return all;
  }

  std::mt19937_64 random_;
  const float* unless_;
  std::deque<std::vector<std::byte>> pieces_;
};

}  // namespace headroom::testing
