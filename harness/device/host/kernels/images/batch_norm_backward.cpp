// The gradient of a batch normalisation, alone or followed by relu or by a residual sum and relu.
// With g, the gradient that relu passes on:
// dx = factor (g - mean(g) - (x - mean) inverse² mean(g (x - mean))),
// dshift = sum(g), dscale = inverse sum(g (x - mean)), over the pixels of a channel.
#include "harness/device/host/kernels/images/channel_groups.h"

namespace headroom::host {
namespace {

// Sums of g and of g (x - mean).
template <std::size_t kLanes>
struct Products {
  double g[kLanes] = {}, gx[kLanes] = {};

  void add(const Products& other) { add(other.g, other.gx); }
  template <typename Number>
  [[gnu::always_inline]] void add(const Number* other_g, const Number* other_gx) {
    for (std::size_t c = 0; c < kLanes; ++c) {
      g[c] += static_cast<double>(other_g[c]);
      gx[c] += static_cast<double>(other_gx[c]);
    }
  }
};

// The gradient that relu passes on. After a residual sum the sign of the output `y` decides;
// without one, relu's input is recomputed from x by the formula of the forward pass.
template <std::size_t kLanes, Behind kBehind>
[[gnu::always_inline]] inline Vector<kLanes> let_through(Vector<kLanes> dy, Vector<kLanes> x,
                                                         const float* y,
                                                         const Normalisation<kLanes>& line) {
  const Vector<kLanes> zeros = {};
  if constexpr (kBehind == Behind::relu) return line.of(x) > zeros ? dy : zeros;
  if constexpr (kBehind == Behind::sum_and_relu) return read<kLanes>(y) > zeros ? dy : zeros;
  return dy;
}

// After a residual sum, g is stored as the gradient of the other summand. It may alias dy.
template <std::size_t kLanes, Behind kBehind>
HEADROOM_VECTORISED void add_pixels(const float* x, const float* dy, const float* y, float* kept,
                                    std::size_t step, std::size_t pixels,
                                    const Normalisation<kLanes>& by, Products<kLanes>& products) {
  const Normalisation<kLanes> line = by;  // a copy that g cannot overwrite
  for (std::size_t begin = 0; begin < pixels; begin += kNearPixels) {
    const std::size_t end = std::min(pixels, begin + kNearPixels);
    Vector<kLanes> sum = {};
    Vector<kLanes> product = {};
    for (std::size_t p = begin; p < end; ++p) {
      const Vector<kLanes> in = read<kLanes>(x + p * step);
      const Vector<kLanes> g =
          let_through<kLanes, kBehind>(read<kLanes>(dy + p * step), in, y + p * step, line);
      if constexpr (kBehind == Behind::sum_and_relu) write<kLanes>(kept + p * step, g);
      sum += g;
      product += g * (in - read<kLanes>(line.mean));
    }
    float sums[kLanes], sums_of_products[kLanes];
    write<kLanes>(sums, sum);
    write<kLanes>(sums_of_products, product);
    products.add(sums, sums_of_products);
  }
}

// The terms that are subtracted from g to obtain dx.
template <std::size_t kLanes>
struct Correction {
  float constant[kLanes] = {}, of_distance[kLanes] = {};  // from the mean
};

// After a residual sum, `dy` already holds g. dx may alias x or dy.
template <std::size_t kLanes, Behind kBehind>
HEADROOM_VECTORISED void correct(const float* x, const float* dy, float* dx, std::size_t step,
                                 std::size_t pixels, const Normalisation<kLanes>& by,
                                 const Correction<kLanes>& less) {
  constexpr Behind kStill = kBehind == Behind::relu ? Behind::relu : Behind::nothing;
  const Normalisation<kLanes> line = by;
  const Correction<kLanes> correction = less;
  for (std::size_t p = 0; p < pixels; ++p) {
    const Vector<kLanes> in = read<kLanes>(x + p * step);
    const Vector<kLanes> g =
        let_through<kLanes, kStill>(read<kLanes>(dy + p * step), in, nullptr, line);
    const Vector<kLanes> distance = in - read<kLanes>(line.mean);
    write<kLanes>(dx + p * step,
                  read<kLanes>(line.factor) * (g - read<kLanes>(correction.constant) -
                                               distance * read<kLanes>(correction.of_distance)));
  }
}

template <std::size_t kLanes, Behind kBehind>
Kernel backward(const Planes& planes, double epsilon) {
  return [planes, epsilon, parts = std::vector<Products<kLanes>>(count_shares(planes))](
             const OpBuffers& buffers) mutable {
    constexpr bool kSums = kBehind == Behind::sum_and_relu;
    const float* x = floats(buffers.inputs[0]);
    const float* dy = floats(buffers.inputs[1]);
    const float* y = kSums ? floats(buffers.inputs[5]) : dy;
    float* dx = floats(buffers.outputs[0]);
    float* kept = kSums ? floats(buffers.outputs[3]) : dx;
    const auto inverse = [&](std::size_t channel) {
      return inverse_deviation(floats(buffers.inputs[3])[channel], epsilon);
    };
    const auto line_of = [&](std::size_t group) {
      Normalisation<kLanes> line;
      for (std::size_t c = 0; c < planes.channels_of(group); ++c) {
        const std::size_t channel = group * kLanes + c;
        line.mean[c] = floats(buffers.inputs[2])[channel];
        line.factor[c] = static_cast<float>(floats(buffers.inputs[4])[channel] * inverse(channel));
        if constexpr (kBehind == Behind::relu) line.shift[c] = floats(buffers.inputs[5])[channel];
      }
      return line;
    };
    const auto sum = [&](const Share& share) {
      Products<kLanes> products;
      const Normalisation<kLanes> line = line_of(share.group);
      for (std::size_t n = share.begin; n < share.end; ++n) {
        const std::size_t at = n * planes.image + share.group * planes.group;
        add_pixels<kLanes, kBehind>(x + at, dy + at, y + at, kept + at, planes.step, planes.pixels,
                                    line, products);
      }
      return products;
    };
    const auto use = [&](const Share& share, const Products<kLanes>& products) {
      Correction<kLanes> correction;
      for (std::size_t c = 0; c < planes.channels_of(share.group); ++c) {
        const std::size_t channel = share.group * kLanes + c;
        const double dscale = products.gx[c] * inverse(channel);
        correction.constant[c] = static_cast<float>(products.g[c] / planes.count());
        correction.of_distance[c] = static_cast<float>(dscale * inverse(channel) / planes.count());
        if (!share.is_first) continue;
        floats(buffers.outputs[1])[channel] = static_cast<float>(dscale);
        floats(buffers.outputs[2])[channel] = static_cast<float>(products.g[c]);
      }
      const Normalisation<kLanes> line = line_of(share.group);
      for (std::size_t n = share.begin; n < share.end; ++n) {
        const std::size_t at = n * planes.image + share.group * planes.group;
        correct<kLanes, kBehind>(x + at, kSums ? kept + at : dy + at, dx + at, planes.step,
                                 planes.pixels, line, correction);
      }
    };
    in_two_sweeps(planes, parts, sum, use);
  };
}

}  // namespace

Kernel make_batch_norm_backward(const Op& op, const Program& program) {
  if (!lies_in_groups(op, program)) return make_library(op, program);
  return in_groups(op, program, [&]<std::size_t kLanes, Behind kBehind>(const Planes& planes) {
    return backward<kLanes, kBehind>(planes, op.number("epsilon"));
  });
}

}  // namespace headroom::host
