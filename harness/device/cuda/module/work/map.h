// Loops that compute each element of a result from the elements at the same place. A thread takes
// several neighbours at once, so that elements of 16 bits move in as few instructions as larger
// ones do. Operands start at multiples of 16 bytes, as every block does.
#pragma once

#include <algorithm>

#include "harness/device/cuda/module/work/work.h"

namespace headroom::cuda {

// n neighbours, loaded or stored by one instruction if they take at most 16 bytes.
template <typename T, int n>
struct alignas(std::min<std::size_t>(16, n * sizeof(T))) Neighbours {
  T of[n];

  HEADROOM_DEVICE void load(const T* from, Index count) {
    if (count >= n)
      *this = *reinterpret_cast<const Neighbours*>(from);
    else
      for (int k = 0; k < n; ++k)
        if (k < count) of[k] = from[k];
  }
  HEADROOM_DEVICE void store(T* to, Index count) const {
    if (count >= n)
      *reinterpret_cast<Neighbours*>(to) = *this;
    else
      for (int k = 0; k < n; ++k)
        if (k < count) to[k] = of[k];
  }
};

// The number of neighbours per thread: as many as take 16 bytes in the smaller type, but at most 8.
template <typename From, typename To>
inline constexpr int kNeighbours = std::min<int>(8, 16 / std::min(sizeof(From), sizeof(To)));

// Visits the n elements from `first` on: f(k, i) for the k-th of them, which is element i.
struct ByIndex {
  template <int n, typename F>
  HEADROOM_DEVICE void visit(Index first, Index, F f) const {
    for (int k = 0; k < n; ++k) f(k, first + k);
  }
};

// Visits them by rows: f(k, row, column). What f reads of a row is read once where all n elements
// are in one row. Leaves out elements from `count` on.
struct ByRow {
  Divisor width;

  template <int n, typename F>
  HEADROOM_DEVICE void visit(Index first, Index count, F f) const {
    Index row = first / width, column = first - row * width;
    if (column + n <= width) {
      for (int k = 0; k < n; ++k) f(k, row, column + k);
      return;
    }
    for (int k = 0; k < n; ++k) {
      if (first + k < count) f(k, row, column);
      if (++column == width) column = 0, ++row;
    }
  }
};

template <typename F, typename From, typename To, typename Places>
struct MapOne {
  static constexpr int kEach = kNeighbours<From, To>;
  F f;
  const From* x;
  To* y;
  Index count;
  Places places;

  HEADROOM_DEVICE void operator()(Index group) const {
    const Index first = group * kEach, left = count - first;
    Neighbours<From, kEach> in{};
    Neighbours<To, kEach> out{};
    in.load(x + first, left);
    places.template visit<kEach>(
        first, count, [&](int k, auto... place) { store(out.of[k], f(place..., load(in.of[k]))); });
    out.store(y + first, left);
  }
};

template <typename F, typename From, typename To, typename Places>
struct MapTwo {
  static constexpr int kEach = kNeighbours<From, To>;
  F f;
  const From* a;
  const From* b;
  To* y;
  Index count;
  Places places;

  HEADROOM_DEVICE void operator()(Index group) const {
    const Index first = group * kEach, left = count - first;
    Neighbours<From, kEach> of_a{}, of_b{};
    Neighbours<To, kEach> out{};
    of_a.load(a + first, left);
    of_b.load(b + first, left);
    places.template visit<kEach>(first, count, [&](int k, auto... place) {
      store(out.of[k], f(place..., load(of_a.of[k]), load(of_b.of[k])));
    });
    out.store(y + first, left);
  }
};

template <typename F, typename From, typename To>
struct MapThree {
  static constexpr int kEach = kNeighbours<From, To>;
  F f;
  const From* a;
  const From* b;
  const From* c;
  To* y;
  Index count;

  HEADROOM_DEVICE void operator()(Index group) const {
    const Index first = group * kEach, left = count - first;
    Neighbours<From, kEach> of_a{}, of_b{}, of_c{};
    Neighbours<To, kEach> out{};
    of_a.load(a + first, left);
    of_b.load(b + first, left);
    of_c.load(c + first, left);
    for (int k = 0; k < kEach; ++k)
      store(out.of[k], f(first + k, load(of_a.of[k]), load(of_b.of[k]), load(of_c.of[k])));
    out.store(y + first, left);
  }
};

template <typename Queue, typename F, typename From, typename To, typename Places>
void map_one(Queue& queue, Index count, F f, const From* x, To* y, Places places) {
  constexpr int kEach = kNeighbours<From, To>;
  queue.for_each((count + kEach - 1) / kEach, MapOne<F, From, To, Places>{f, x, y, count, places});
}

template <typename Queue, typename F, typename From, typename To, typename Places>
void map_two(Queue& queue, Index count, F f, const From* a, const From* b, To* y, Places places) {
  constexpr int kEach = kNeighbours<From, To>;
  queue.for_each((count + kEach - 1) / kEach,
                 MapTwo<F, From, To, Places>{f, a, b, y, count, places});
}

// y[i] = f(i, x[i]), where y may be x.
template <typename Queue, typename F, typename From, typename To>
void map(Queue& queue, Index count, F f, const From* x, To* y) {
  map_one(queue, count, f, x, y, ByIndex{});
}

// y[i] = f(i, a[i], b[i]), where y may be a or b.
template <typename Queue, typename F, typename From, typename To>
void map(Queue& queue, Index count, F f, const From* a, const From* b, To* y) {
  map_two(queue, count, f, a, b, y, ByIndex{});
}

// y[i] = f(i, a[i], b[i], c[i]), where y may be a, b or c.
template <typename Queue, typename F, typename From, typename To>
void map(Queue& queue, Index count, F f, const From* a, const From* b, const From* c, To* y) {
  using Map = MapThree<F, From, To>;
  queue.for_each((count + Map::kEach - 1) / Map::kEach, Map{f, a, b, c, y, count});
}

// y[r, c] = f(r, c, x[r, c]), where y may be x.
template <typename Queue, typename F, typename From, typename To>
void map_rows(Queue& queue, Index count, Index width, F f, const From* x, To* y) {
  map_one(queue, count, f, x, y, ByRow{width});
}

// y[r, c] = f(r, c, a[r, c], b[r, c]), where y may be a or b.
template <typename Queue, typename F, typename From, typename To>
void map_rows(Queue& queue, Index count, Index width, F f, const From* a, const From* b, To* y) {
  map_two(queue, count, f, a, b, y, ByRow{width});
}

}  // namespace headroom::cuda
