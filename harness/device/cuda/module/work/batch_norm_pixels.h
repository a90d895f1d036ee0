// Batch normalisation of channels-last images. A thread keeps what is alike in its column and takes
// many rows.
#pragma once

#include "harness/device/cuda/module/work/pixels.h"
#include "harness/device/cuda/module/work/sums.h"

namespace headroom::cuda {

// The computation that an op does after its batch normalisation.
enum class Then { nothing, relu, sum_and_relu };

// One sum, or pair of sums, for each channel of a column.
template <typename Sum, int n>
struct Several {
  Sum of[n];
};

struct AddEach {
  template <typename A, typename B, int n>
  HEADROOM_DEVICE Several<A, n> operator()(Several<A, n> a, const Several<B, n>& b) const {
    for (int k = 0; k < n; ++k) a.of[k] = Add{}(a.of[k], b.of[k]);
    return a;
  }
};

// The parts of the sums of one channel.
template <int n>
struct PartOfColumn {
  const Several<Sums, n>* parts;
  Index groups;
  HEADROOM_DEVICE Sums operator()(Index channel, Index group) const {
    return parts[channel / n * groups + group].of[channel % n];
  }
};

// Calls finish(c, sums of terms over all rows) for each channel c, where terms.of_column(j)(row)
// are those of n channels from j n on. Enough groups of rows for six blocks on each of an H200's
// 132 multiprocessors, but none so small that its end takes longer than its sum.
template <int n, typename Queue, typename Terms, typename Finish>
void sum_pixels(Queue& queue, const Pixels& shape, Terms terms, Finish finish) {
  constexpr Index kColumnsAndGroups = 6 * 132 * 8, kRowsOfGroup = 512;
  const Index columns = shape.channels / n;
  const Index most = std::max<Index>(1, shape.rows / kRowsOfGroup);
  const Index groups = std::clamp<Index>(kColumnsAndGroups / columns, 1, most);
  auto* parts = queue.template scratch<Several<Sums, n>>(groups * columns);
  queue.reduce_columns(groups, shape.rows, columns, terms, AddEach{}, Several<Sums, n>{}, parts);
  queue.reduce_rows(shape.channels, groups, PartOfColumn<n>{parts, groups}, Add{}, Sums{}, finish);
}

template <typename T, int n>
struct SelfAndSquareOfPixels {
  const T* x;
  Index channels;

  struct Column {
    const T* x;
    Index channels;
    HEADROOM_DEVICE Several<FewSums, n> operator()(Index row) const {
      Neighbours<T, n> in;
      in.load(x + row * channels, n);
      Several<FewSums, n> terms;
      for (int k = 0; k < n; ++k) {
        const float value = load(in.of[k]);
        terms.of[k] = {value, value * value};
      }
      return terms;
    }
  };
  HEADROOM_DEVICE Column of_column(Index column) const { return {x + column * n, channels}; }
};

template <int n>
HEADROOM_DEVICE Neighbours<float, n> of_channels(const float* all, Index column) {
  Neighbours<float, n> some;
  some.load(all + column * n, n);
  return some;
}

// The parameters of all channels, and those of a column.
struct PixelNorm {
  const float* scale;
  const float* shift;
  const float* mean;
  const float* inverse;  // of the deviation

  template <int n>
  struct Column {
    Neighbours<float, n> mean, factor, shift;
    HEADROOM_DEVICE float operator()(int k, float value) const {
      return (value - mean.of[k]) * factor.of[k] + shift.of[k];
    }
  };

  // `shift` is null where only the factor and the mean are of use.
  template <int n>
  HEADROOM_DEVICE Column<n> of_column(Index column) const {
    Column<n> made{of_channels<n>(mean, column), of_channels<n>(inverse, column), {}};
    const auto factor = of_channels<n>(scale, column);
    for (int k = 0; k < n; ++k) made.factor.of[k] *= factor.of[k];
    if (shift != nullptr) made.shift = of_channels<n>(shift, column);
    return made;
  }
};

// The n channels of a pixel that are under way: of one operand or of two.
template <typename T, int n, bool kTwo>
struct Operands {
  Neighbours<T, n> first;
  Neighbours<T, kTwo ? n : 1> second;
};

template <typename T, int n, Then kThen>
struct NormalisePixels {
  static constexpr bool kAdds = kThen == Then::sum_and_relu;
  PixelNorm norm;
  const T* x;
  const T* other;  // null without a sum
  T* y;
  Index channels;

  struct Column {
    PixelNorm::Column<n> norm;
    const T* x;
    const T* other;
    T* y;
    Index channels;

    HEADROOM_DEVICE Operands<T, n, kAdds> read(Index row) const {
      Operands<T, n, kAdds> in{};
      in.first.load(x + row * channels, n);
      if constexpr (kAdds) in.second.load(other + row * channels, n);
      return in;
    }
    HEADROOM_DEVICE void write(Index row, const Operands<T, n, kAdds>& in) const {
      Neighbours<T, n> out;
      for (int k = 0; k < n; ++k) {
        float result = norm(k, load(in.first.of[k]));
        if constexpr (kAdds) result += load(in.second.of[k]);
        if constexpr (kThen != Then::nothing) result = result < 0 ? 0 : result;  // NaN stays NaN
        store(out.of[k], result);
      }
      out.store(y + row * channels, n);
    }
  };
  HEADROOM_DEVICE Column of_column(Index column) const {
    const Index first = column * n;
    return {norm.template of_column<n>(column), x + first, kAdds ? other + first : nullptr,
            y + first, channels};
  }
};

// The gradient that relu lets through, and its product with x.
template <typename T, int n, bool kRelu>
struct GradientAndProductOfPixels {
  PixelNorm norm;
  const T* x;
  const T* dy;
  Index channels;

  struct Column {
    PixelNorm::Column<n> norm;
    const T* x;
    const T* dy;
    Index channels;

    HEADROOM_DEVICE Several<FewSums, n> operator()(Index row) const {
      Operands<T, n, true> in;
      in.first.load(x + row * channels, n);
      in.second.load(dy + row * channels, n);
      Several<FewSums, n> terms;
      for (int k = 0; k < n; ++k) {
        const float value = load(in.first.of[k]);
        const bool passes = !kRelu || norm(k, value) > 0;
        const float gradient = passes ? load(in.second.of[k]) : 0;
        terms.of[k] = {gradient, gradient * value};
      }
      return terms;
    }
  };
  HEADROOM_DEVICE Column of_column(Index column) const {
    const Index first = column * n;
    return {norm.template of_column<n>(column), x + first, dy + first, channels};
  }
};

template <typename T, int n, bool kRelu>
struct GradientOfPixels {
  PixelNorm norm;
  const float* dscale;
  const float* dshift;
  const T* x;
  const T* dy;
  T* dx;
  Index channels;
  float share;  // of a pixel in the means over all of them

  struct Column {
    PixelNorm::Column<n> norm;
    Neighbours<float, n> of_scale, of_shift;
    const T* x;
    const T* dy;
    T* dx;
    Index channels;

    HEADROOM_DEVICE Operands<T, n, true> read(Index row) const {
      Operands<T, n, true> in;
      in.first.load(x + row * channels, n);
      in.second.load(dy + row * channels, n);
      return in;
    }
    HEADROOM_DEVICE void write(Index row, const Operands<T, n, true>& in) const {
      Neighbours<T, n> out;
      for (int k = 0; k < n; ++k) {
        const float value = load(in.first.of[k]);
        const bool passes = !kRelu || norm(k, value) > 0;
        const float gradient = passes ? load(in.second.of[k]) : 0;
        const float less = of_shift.of[k] + (value - norm.mean.of[k]) * of_scale.of[k];
        store(out.of[k], norm.factor.of[k] * (gradient - less));
      }
      out.store(dx + row * channels, n);
    }
  };
  HEADROOM_DEVICE Column of_column(Index column) const {
    const Index first = column * n;
    Column made{norm.template of_column<n>(column),
                of_channels<n>(dscale, column),
                of_channels<n>(dshift, column),
                x + first,
                dy + first,
                dx + first,
                channels};
    const auto inverse = of_channels<n>(norm.inverse, column);
    for (int k = 0; k < n; ++k) {
      made.of_scale.of[k] *= share * inverse.of[k];
      made.of_shift.of[k] *= share;
    }
    return made;
  }
};

}  // namespace headroom::cuda
