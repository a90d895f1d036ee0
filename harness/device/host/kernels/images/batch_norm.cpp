// Batch normalisation, alone or followed by relu or by a residual sum and relu: x is read twice, y
// written once.
#include <cmath>

#include "harness/device/host/kernels/images/channel_groups.h"

namespace headroom::host {
namespace {

// Means and sums of squared deviations. Two of them are combined as in Chan, Golub and LeVeque
// 1983, "Algorithms for Computing the Sample Variance".
template <std::size_t kLanes>
struct Moments {
  double count = 0;
  double mean[kLanes] = {}, squares[kLanes] = {};

  void add(const Moments& other) { add(other.count, other.mean, other.squares); }
  template <typename Number>
  [[gnu::always_inline]] void add(double more, const Number* other_mean,
                                  const Number* other_squares) {
    if (more == 0) return;
    const double share = more / (count + more);
    for (std::size_t c = 0; c < kLanes; ++c) {
      const double distance = static_cast<double>(other_mean[c]) - mean[c];
      squares[c] += static_cast<double>(other_squares[c]) + distance * distance * count * share;
      mean[c] += distance * share;
    }
    count += more;
  }
};

template <std::size_t kLanes>
HEADROOM_VECTORISED void add_pixels(const float* x, std::size_t step, std::size_t pixels,
                                    Moments<kLanes>& moments) {
  for (std::size_t begin = 0; begin < pixels; begin += kNearPixels, x += kNearPixels * step) {
    const std::size_t count = std::min(kNearPixels, pixels - begin);
    const std::size_t even_count = count / 2 * 2;
    Vector<kLanes> even = {};
    Vector<kLanes> odd = {};
    for (std::size_t p = 0; p < even_count; p += 2) {
      even += read<kLanes>(x + p * step);
      odd += read<kLanes>(x + (p + 1) * step);
    }
    if (even_count < count) even += read<kLanes>(x + even_count * step);
    const Vector<kLanes> mean = (even + odd) / static_cast<float>(count);
    even = odd = Vector<kLanes>{};
    for (std::size_t p = 0; p < even_count; p += 2) {
      const Vector<kLanes> a = read<kLanes>(x + p * step) - mean;
      const Vector<kLanes> b = read<kLanes>(x + (p + 1) * step) - mean;
      even += a * a;
      odd += b * b;
    }
    if (even_count < count) {
      const Vector<kLanes> a = read<kLanes>(x + even_count * step) - mean;
      even += a * a;
    }
    float means[kLanes], squares[kLanes];
    write<kLanes>(means, mean);
    write<kLanes>(squares, even + odd);
    moments.add(static_cast<double>(count), means, squares);
  }
}

// y may alias x or `addend`.
template <std::size_t kLanes, Behind kBehind>
HEADROOM_VECTORISED void normalise(const float* x, const float* addend, float* y, std::size_t step,
                                   std::size_t pixels, const Normalisation<kLanes>& by) {
  const Normalisation<kLanes> line = by;  // a copy that y cannot overwrite
  const Vector<kLanes> zeros = {};
  for (std::size_t p = 0; p < pixels; ++p) {
    Vector<kLanes> result = line.of(read<kLanes>(x + p * step));
    if constexpr (kBehind == Behind::sum_and_relu) result += read<kLanes>(addend + p * step);
    if constexpr (kBehind != Behind::nothing) result = result < zeros ? zeros : result;  // or NaN
    write<kLanes>(y + p * step, result);
  }
}

template <std::size_t kLanes, Behind kBehind>
Kernel forward(const Planes& planes, double epsilon) {
  return [planes, epsilon, parts = std::vector<Moments<kLanes>>(count_shares(planes))](
             const OpBuffers& buffers) mutable {
    const float* x = floats(buffers.inputs[0]);
    const float* addend =
        kBehind == Behind::sum_and_relu ? floats(buffers.inputs[3]) : floats(buffers.inputs[0]);
    const auto sum = [&](const Share& share) {
      Moments<kLanes> moments;
      for (std::size_t n = share.begin; n < share.end; ++n)
        add_pixels<kLanes>(x + n * planes.image + share.group * planes.group, planes.step,
                           planes.pixels, moments);
      return moments;
    };
    const auto use = [&](const Share& share, const Moments<kLanes>& moments) {
      Normalisation<kLanes> line;
      for (std::size_t c = 0; c < planes.channels_of(share.group); ++c) {
        const std::size_t channel = share.group * kLanes + c;
        const auto variance = static_cast<float>(moments.squares[c] / planes.count());
        line.mean[c] = static_cast<float>(moments.mean[c]);
        line.factor[c] = static_cast<float>(floats(buffers.inputs[1])[channel] *
                                            inverse_deviation(variance, epsilon));
        line.shift[c] = floats(buffers.inputs[2])[channel];
        if (!share.is_first) continue;
        floats(buffers.outputs[1])[channel] = line.mean[c];
        floats(buffers.outputs[2])[channel] = variance;
      }
      for (std::size_t n = share.begin; n < share.end; ++n) {
        const std::size_t at = n * planes.image + share.group * planes.group;
        normalise<kLanes, kBehind>(x + at, addend + at, floats(buffers.outputs[0]) + at,
                                   planes.step, planes.pixels, line);
      }
    };
    in_two_sweeps(planes, parts, sum, use);
  };
}

}  // namespace

double inverse_deviation(float variance, double epsilon) {
  return 1 / std::sqrt(static_cast<double>(variance) + epsilon);
}

Behind behind(const Op& op) {
  if (op.kind.starts_with("batch_norm_add_relu")) return Behind::sum_and_relu;
  return op.kind.starts_with("batch_norm_relu") ? Behind::relu : Behind::nothing;
}

bool lies_in_groups(const Op& op, const Program& program) {
  return onednn::lies_in_channel_groups(onednn::layout_of(program.value(op.inputs[0])));
}

Kernel make_batch_norm(const Op& op, const Program& program) {
  if (!lies_in_groups(op, program)) return make_library(op, program);
  return in_groups(op, program, [&]<std::size_t kLanes, Behind kBehind>(const Planes& planes) {
    return forward<kLanes, kBehind>(planes, op.number("epsilon"));
  });
}

}  // namespace headroom::host
