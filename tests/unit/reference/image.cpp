// Images: convolution, batch normalisation, relu, pooling.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/unit/reference/kinds.h"

namespace headroom::testing {
namespace {

double& at(Tensor& t, const Shape& s, Index n, Index c, Index h, Index w) {
  return t[static_cast<std::size_t>(((n * s[1] + c) * s[2] + h) * s[3] + w)];
}

// Calls visit(n, o, c, oh, ow, kh, kw, h, w) for every product of a convolution of x by w.
void each_product(const Op& op, const Shape& x, const Shape& w, const Shape& y,
                  const std::function<void(Index, Index, Index, Index, Index, Index, Index, Index,
                                           Index)>& visit) {
  const auto& stride = op.list("strides");
  const auto& padding = op.list("padding");
  for (Index n = 0; n < y[0]; ++n)
    for (Index o = 0; o < y[1]; ++o)
      for (Index oh = 0; oh < y[2]; ++oh)
        for (Index ow = 0; ow < y[3]; ++ow)
          for (Index c = 0; c < x[1]; ++c)
            for (Index kh = 0; kh < w[2]; ++kh)
              for (Index kw = 0; kw < w[3]; ++kw) {
                const Index h = oh * stride[0] + kh - padding[0];
                const Index v = ow * stride[1] + kw - padding[1];
                if (h >= 0 && h < x[2] && v >= 0 && v < x[3]) visit(n, o, c, oh, ow, kh, kw, h, v);
              }
}

void convolution(const Run& r) {
  Tensor& y = r.out(0);
  each_product(r.op, r.shape(0), r.shape(1), r.out_shape(0),
               [&](auto n, auto o, auto c, auto oh, auto ow, auto kh, auto kw, auto h, auto w) {
                 at(y, r.out_shape(0), n, o, oh, ow) +=
                     at(r.in(0), r.shape(0), n, c, h, w) * at(r.in(1), r.shape(1), o, c, kh, kw);
               });
}

void convolution_backward_data(const Run& r) {
  Tensor& dx = r.out(0);
  each_product(r.op, r.out_shape(0), r.shape(1), r.shape(0),
               [&](auto n, auto o, auto c, auto oh, auto ow, auto kh, auto kw, auto h, auto w) {
                 at(dx, r.out_shape(0), n, c, h, w) +=
                     at(r.in(0), r.shape(0), n, o, oh, ow) * at(r.in(1), r.shape(1), o, c, kh, kw);
               });
}

void convolution_backward_weights(const Run& r) {
  Tensor& dw = r.out(0);
  each_product(r.op, r.shape(0), r.out_shape(0), r.shape(1),
               [&](auto n, auto o, auto c, auto oh, auto ow, auto kh, auto kw, auto h, auto w) {
                 at(dw, r.out_shape(0), o, c, kh, kw) +=
                     at(r.in(0), r.shape(0), n, c, h, w) * at(r.in(1), r.shape(1), n, o, oh, ow);
               });
}

// Computed as its defining sum: each input pixel adds a scaled kernel to the output.
void transposed_convolution(const Run& r) {
  Tensor& y = r.out(0);
  each_product(r.op, r.out_shape(0), r.shape(1), r.shape(0),
               [&](auto n, auto i, auto o, auto h, auto w, auto kh, auto kw, auto oh, auto ow) {
                 at(y, r.out_shape(0), n, o, oh, ow) +=
                     at(r.in(0), r.shape(0), n, i, h, w) * at(r.in(1), r.shape(1), i, o, kh, kw);
               });
}

// Channel of each element of an NCHW tensor.
std::size_t channel(const Shape& s, std::size_t i) {
  return i / static_cast<std::size_t>(s[2] * s[3]) % static_cast<std::size_t>(s[1]);
}

double per_channel_count(const Shape& s) { return static_cast<double>(s[0] * s[2] * s[3]); }

void normalise(const Run& r, const Tensor& mean, const Tensor& variance, Tensor& y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t c = channel(r.shape(0), i);
    y[i] = (r.in(0)[i] - mean[c]) / std::sqrt(variance[c] + r.op.number("epsilon")) * r.in(1)[c] +
           r.in(2)[c];
  }
}

void batch_norm(const Run& r) {
  Tensor& y = r.out(0);
  Tensor& mean = r.out(1);
  Tensor& variance = r.out(2);
  const double count = per_channel_count(r.shape(0));
  for (std::size_t i = 0; i < y.size(); ++i) mean[channel(r.shape(0), i)] += r.in(0)[i] / count;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t c = channel(r.shape(0), i);
    variance[c] += (r.in(0)[i] - mean[c]) * (r.in(0)[i] - mean[c]) / count;
  }
  normalise(r, mean, variance, y);
}

void batch_norm_inference(const Run& r) { normalise(r, r.in(3), r.in(4), r.out(0)); }

void normalisation_backward(const Run& r, const Tensor& dy) {
  const Tensor &x = r.in(0), &mean = r.in(2), &variance = r.in(3), &scale = r.in(4);
  Tensor& dx = r.out(0);
  Tensor& dscale = r.out(1);
  Tensor& dshift = r.out(2);
  const double count = per_channel_count(r.shape(0));
  const auto inverse = [&](std::size_t c) {
    return 1 / std::sqrt(variance[c] + r.op.number("epsilon"));
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel(r.shape(0), i);
    dscale[c] += dy[i] * (x[i] - mean[c]) * inverse(c);
    dshift[c] += dy[i];
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = channel(r.shape(0), i);
    const double normalised = (x[i] - mean[c]) * inverse(c);
    dx[i] = scale[c] * inverse(c) * (dy[i] - dshift[c] / count - normalised * dscale[c] / count);
  }
}

void batch_norm_backward(const Run& r) { normalisation_backward(r, r.in(1)); }

void batch_norm_relu(const Run& r) {
  batch_norm(r);
  for (double& y : r.tensors[r.op.outputs[0]]) y = std::max(y, 0.0);
}

void batch_norm_add_relu(const Run& r) {
  batch_norm(r);
  for (std::size_t i = 0; double& y : r.tensors[r.op.outputs[0]])
    y = std::max(y + r.in(3)[i++], 0.0);
}

// Rounding decides which values near 0 are positive, so this comparison is made in f32.
void batch_norm_relu_backward(const Run& r) {
  Tensor g = r.in(1);
  for (std::size_t i = 0; i < g.size(); ++i) {
    const std::size_t c = channel(r.shape(0), i);
    const double inverse = 1 / std::sqrt(r.in(3)[c] + r.op.number("epsilon"));
    const auto factor = static_cast<float>(r.in(4)[c] * inverse);
    const float distance = static_cast<float>(r.in(0)[i]) - static_cast<float>(r.in(2)[c]);
    const float scaled = distance * factor;
    if (!(scaled > -static_cast<float>(r.in(5)[c]))) g[i] = 0;
  }
  normalisation_backward(r, g);
}

void batch_norm_add_relu_backward(const Run& r) {
  Tensor& g = r.out(3);
  for (std::size_t i = 0; i < g.size(); ++i) g[i] = r.in(5)[i] > 0 ? r.in(1)[i] : 0;
  normalisation_backward(r, g);
}

void update_statistics(const Run& r) {
  const double m = r.op.number("momentum");
  const auto n = static_cast<double>(r.op.integer("count"));
  for (std::size_t c = 0; c < r.in(0).size(); ++c) {
    r.in(0)[c] = (1 - m) * r.in(0)[c] + m * r.in(2)[c];
    r.in(1)[c] = (1 - m) * r.in(1)[c] + m * r.in(3)[c] * n / (n - 1);
  }
}

void relu(const Run& r) {
  Tensor& y = r.out(0);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::max(r.in(0)[i], 0.0);
}

void relu_backward(const Run& r) {
  Tensor& dx = r.out(0);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const double more = r.op.inputs.size() > 2 ? r.in(2)[i] : 0;
    dx[i] = r.in(0)[i] > 0 ? r.in(1)[i] + more : 0;
  }
}

void add(const Run& r) {
  Tensor& y = r.out(0);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = r.in(0)[i] + r.in(1)[i];
}

// The reference's indices are flat positions of the maxima inside x's plane.
void max_pool(const Run& r) {
  Tensor& y = r.out(0);
  Tensor& indices = r.out(1);
  const auto &k = r.op.list("kernel"), &s = r.op.list("strides"), &p = r.op.list("padding");
  const Shape &x = r.shape(0), &o = r.out_shape(0);
  for (Index n = 0; n < o[0]; ++n)
    for (Index c = 0; c < o[1]; ++c)
      for (Index oh = 0; oh < o[2]; ++oh)
        for (Index ow = 0; ow < o[3]; ++ow) {
          double best = -std::numeric_limits<double>::infinity();
          Index where = -1;
          for (Index h = oh * s[0] - p[0]; h < oh * s[0] - p[0] + k[0]; ++h)
            for (Index w = ow * s[1] - p[1]; w < ow * s[1] - p[1] + k[1]; ++w)
              if (h >= 0 && h < x[2] && w >= 0 && w < x[3] && at(r.in(0), x, n, c, h, w) > best) {
                best = at(r.in(0), x, n, c, h, w);
                where = h * x[3] + w;
              }
          at(y, o, n, c, oh, ow) = best;
          at(indices, o, n, c, oh, ow) = static_cast<double>(where);
        }
}

void max_pool_backward(const Run& r) {
  Tensor& dx = r.out(0);
  const Shape &o = r.shape(0), &x = r.out_shape(0);
  const auto plane = static_cast<std::size_t>(o[2] * o[3]);
  for (std::size_t i = 0; i < r.in(0).size(); ++i)
    dx[i / plane * static_cast<std::size_t>(x[2] * x[3]) + static_cast<std::size_t>(r.in(1)[i])] +=
        r.in(0)[i];
}

void global_average_pool(const Run& r) {
  Tensor& y = r.out(0);
  const auto plane = static_cast<std::size_t>(r.shape(0)[2] * r.shape(0)[3]);
  for (std::size_t i = 0; i < r.in(0).size(); ++i)
    y[i / plane] += r.in(0)[i] / static_cast<double>(plane);
}

void global_average_pool_backward(const Run& r) {
  Tensor& dx = r.out(0);
  const auto plane = static_cast<std::size_t>(r.out_shape(0)[2] * r.out_shape(0)[3]);
  for (std::size_t i = 0; i < dx.size(); ++i)
    dx[i] = r.in(0)[i / plane] / static_cast<double>(plane);
}

void upsample(const Run& r) {
  Tensor& result = r.out(0);
  const Index factor = r.op.integer("factor");
  const Shape &x = r.shape(0), &y = r.out_shape(0);
  for (Index n = 0; n < y[0]; ++n)
    for (Index c = 0; c < y[1]; ++c)
      for (Index h = 0; h < y[2]; ++h)
        for (Index w = 0; w < y[3]; ++w)
          at(result, y, n, c, h, w) =
              r.op.number("scale") * at(r.in(0), x, n, c, h / factor, w / factor);
}

void sum_pool(const Run& r) {
  Tensor& result = r.out(0);
  const Index factor = r.op.integer("factor");
  const Shape &x = r.shape(0), &y = r.out_shape(0);
  for (Index n = 0; n < x[0]; ++n)
    for (Index c = 0; c < x[1]; ++c)
      for (Index h = 0; h < x[2]; ++h)
        for (Index w = 0; w < x[3]; ++w)
          at(result, y, n, c, h / factor, w / factor) +=
              r.op.number("scale") * at(r.in(0), x, n, c, h, w);
}

}  // namespace

Kinds image_kinds() {
  return {
      {"add", add},
      {"batch_norm", batch_norm},
      {"batch_norm_add_relu", batch_norm_add_relu},
      {"batch_norm_add_relu_backward", batch_norm_add_relu_backward},
      {"batch_norm_backward", batch_norm_backward},
      {"batch_norm_inference", batch_norm_inference},
      {"batch_norm_relu", batch_norm_relu},
      {"batch_norm_relu_backward", batch_norm_relu_backward},
      {"convolution", convolution},
      {"convolution_backward_data", convolution_backward_data},
      {"convolution_backward_weights", convolution_backward_weights},
      {"global_average_pool", global_average_pool},
      {"global_average_pool_backward", global_average_pool_backward},
      {"max_pool", max_pool},
      {"max_pool_backward", max_pool_backward},
      {"relu", relu},
      {"relu_backward", relu_backward},
      {"sum_pool", sum_pool},
      {"transposed_convolution", transposed_convolution},
      {"update_statistics", update_statistics},
      {"upsample", upsample},
  };
}

}  // namespace headroom::testing
