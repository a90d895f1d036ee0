#include "tests/unit/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <numbers>

#include "harness/base/error.h"
#include "harness/program/conditional.h"

namespace headroom::testing {
namespace {

using Index = std::int64_t;

// What one op reads and writes.
struct Run {
  const Program& program;
  const Op& op;
  Tensors& tensors;

  const Shape& shape(std::size_t i) const { return program.value(op.inputs[i]).shape; }
  const Shape& out_shape(std::size_t i) const { return program.value(op.outputs[i]).shape; }
  Tensor& in(std::size_t i) const { return tensors[op.inputs[i]]; }
  Tensor& out(std::size_t i) const {
    Tensor& tensor = tensors[op.outputs[i]];
    tensor.assign(static_cast<std::size_t>(element_count(out_shape(i))), 0.0);
    return tensor;
  }
};

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

// As the sum it is: each input pixel spreads a kernel over the output.
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

void batch_norm_backward(const Run& r) {
  const Tensor &x = r.in(0), &dy = r.in(1), &mean = r.in(2), &variance = r.in(3), &scale = r.in(4);
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
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = r.in(0)[i] > 0 ? r.in(1)[i] : 0;
}

void add(const Run& r) {
  Tensor& y = r.out(0);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = r.in(0)[i] + r.in(1)[i];
}

// The reference's indices hold the flat position inside x's plane of each maximum.
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

// c[i,j] += Σ_k a(i,k)·b(k,j), operands given as functions of their indices.
template <typename A, typename B>
void product(Index rows, Index inner, Index columns, A a, B b, Tensor& c) {
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      for (Index k = 0; k < inner; ++k)
        c[static_cast<std::size_t>(i * columns + j)] += a(i, k) * b(k, j);
}

auto entry(const Tensor& t, Index columns) {
  return [&t, columns](Index i, Index j) { return t[static_cast<std::size_t>(i * columns + j)]; };
}
auto transposed(const Tensor& t, Index columns) {
  return [&t, columns](Index i, Index j) { return t[static_cast<std::size_t>(j * columns + i)]; };
}

void linear(const Run& r) {
  Tensor& y = r.out(0);
  const Index n = r.shape(0)[0], in = r.shape(0)[1], out = r.shape(1)[0];
  product(n, in, out, entry(r.in(0), in), transposed(r.in(1), in), y);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += r.in(2)[i % static_cast<std::size_t>(out)];
}

void linear_backward_data(const Run& r) {
  const Index n = r.shape(0)[0], out = r.shape(0)[1], in = r.shape(1)[1];
  product(n, out, in, entry(r.in(0), out), entry(r.in(1), in), r.out(0));
}

void linear_backward_weights(const Run& r) {
  const Index n = r.shape(0)[0], in = r.shape(0)[1], out = r.shape(1)[1];
  product(out, n, in, transposed(r.in(1), out), entry(r.in(0), in), r.out(0));
  Tensor& db = r.out(1);
  for (std::size_t i = 0; i < r.in(1).size(); ++i)
    db[i % static_cast<std::size_t>(out)] += r.in(1)[i];
}

// Label -1: the row does not count.
double counted_rows(const Tensor& labels) {
  const auto counted = std::count_if(labels.begin(), labels.end(), [](double l) { return l >= 0; });
  return std::max(1.0, static_cast<double>(counted));
}

void softmax_cross_entropy(const Run& r) {
  Tensor& loss = r.out(0);
  Tensor& probabilities = r.out(1);
  const auto rows = static_cast<std::size_t>(r.shape(0)[0]);
  const auto classes = static_cast<std::size_t>(r.shape(0)[1]);
  const double counted = counted_rows(r.in(1));
  for (std::size_t n = 0; n < rows; ++n) {
    const double* logits = r.in(0).data() + n * classes;
    const double largest = *std::max_element(logits, logits + classes);
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(logits[k] - largest);
    for (std::size_t k = 0; k < classes; ++k)
      probabilities[n * classes + k] = std::exp(logits[k] - largest) / sum;
    if (r.in(1)[n] < 0) continue;
    const double hit = logits[static_cast<std::size_t>(r.in(1)[n])] - largest;
    loss[0] += (std::log(sum) - hit) / counted;
  }
}

void softmax_cross_entropy_backward(const Run& r) {
  Tensor& gradient = r.out(0);
  const auto classes = static_cast<std::size_t>(r.shape(0)[1]);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double label = r.in(1)[i / classes];
    const bool hit = label == static_cast<double>(i % classes);
    if (label >= 0) gradient[i] = (r.in(0)[i] - (hit ? 1 : 0)) / counted_rows(r.in(1));
  }
}

void sigmoid_cross_entropy(const Run& r) {
  Tensor& loss = r.out(0);
  const double target = r.op.number("target");
  // log σ(x) = −log(1 + e⁻ˣ), and 1 − σ(x) = σ(−x): no difference of nearly equal numbers.
  for (const double x : r.in(0))
    loss[0] += (target * std::log1p(std::exp(-x)) + (1 - target) * std::log1p(std::exp(x))) /
               static_cast<double>(r.in(0).size());
}

void sigmoid_cross_entropy_backward(const Run& r) {
  Tensor& gradient = r.out(0);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = (1 / (1 + std::exp(-r.in(0)[i])) - r.op.number("target")) /
                  static_cast<double>(gradient.size());
}

void count_correct(const Run& r) {
  Tensor& count = r.out(0);
  const auto classes = r.shape(0)[1];
  for (std::size_t n = 0; n < r.in(1).size(); ++n) {
    const auto row = r.in(0).begin() + static_cast<Index>(n) * classes;
    count[0] += std::max_element(row, row + classes) - row == static_cast<Index>(r.in(1)[n]);
  }
}

void sgd_momentum(const Run& r) {
  for (std::size_t i = 0; i < r.in(0).size(); ++i) {
    r.in(2)[i] = r.op.number("momentum") * r.in(2)[i] + r.in(1)[i] +
                 r.op.number("weight_decay") * r.in(0)[i];
    r.in(0)[i] -= r.op.number("learning_rate") * r.in(2)[i];
  }
}

void accumulate(const Run& r) {
  for (std::size_t i = 0; i < r.in(0).size(); ++i)
    r.in(0)[i] = (r.op.integer("start") == 1 ? 0 : r.in(0)[i]) +
                 r.op.number("scale") * (r.op.inputs.size() == 3 ? r.in(2)[0] : 1) * r.in(1)[i];
}

void divide(const Run& r) {
  if (r.in(1)[0] == 0) return;
  for (double& x : r.in(0)) x /= r.in(1)[0];
}

void count_labels(const Run& r) {
  const auto counted =
      std::count_if(r.in(0).begin(), r.in(0).end(), [](double label) { return label >= 0; });
  r.out(0)[0] = static_cast<double>(counted);
}

void magnitude_mask(const Run& r) {
  const double t = r.in(2)[0], begin = static_cast<double>(r.op.integer("begin")),
               end = static_cast<double>(r.op.integer("end"));
  if (t < begin || t > end ||
      (r.op.integer("begin") - static_cast<Index>(t)) % r.op.integer("every"))
    return;
  const double way = end == begin ? 1 : (t - begin) / (end - begin);
  const double share =
      r.op.number("final") + (r.op.number("initial") - r.op.number("final")) * std::pow(1 - way, 3);
  Tensor sizes = r.in(0);
  for (double& size : sizes) size = std::abs(size);
  std::sort(sizes.begin(), sizes.end());
  const auto n = static_cast<double>(sizes.size());
  const auto pruned = static_cast<std::size_t>(std::min(n - 1, std::round(share * n)));
  if (pruned == 0) return;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    r.in(1)[i] = r.in(0)[i] != 0 && std::abs(r.in(0)[i]) >= sizes[pruned] ? 1 : 0;
}

void two_of_four_mask(const Run& r) {
  if (r.in(2)[0] != static_cast<double>(r.op.integer("begin"))) return;
  const auto columns = static_cast<std::size_t>(r.shape(0)[1]);
  std::size_t apart = 1;  // of neighbours along the second dimension
  for (std::size_t d = 2; d < r.shape(0).size(); ++d)
    apart *= static_cast<std::size_t>(r.shape(0)[d]);
  const auto size = [&](std::size_t e) { return std::abs(r.in(0)[e]); };
  for (std::size_t e = 0; e < r.in(0).size(); ++e) {
    const std::size_t place = e / apart % columns % 4;
    int ahead = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t other = e - place * apart + k * apart;
      ahead += size(other) > size(e) || (size(other) == size(e) && k < place) ? 1 : 0;
    }
    r.in(1)[e] = ahead < 2 ? 1 : 0;
  }
}

void apply_mask(const Run& r) {
  for (std::size_t i = 0; i < r.in(0).size(); ++i) r.in(0)[i] *= r.in(1)[i];
}

void masked(const Run& r) {
  Tensor& y = r.out(0);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = r.in(0)[i] * r.in(1)[i];
}

void clip_factor(const Run& r) {
  double squares = 0;
  for (std::size_t i = 0; i < r.op.inputs.size(); ++i)
    for (const double g : r.in(i)) squares += g * g;
  r.out(0) = {std::min(1.0, r.op.number("largest_norm") / std::sqrt(squares))};
}

void scale_gradient(const Run& r) {
  for (double& g : r.in(0)) g *= r.in(1)[0];
}

void check_gradients(const Run& r) {
  double& overflow = r.out(0)[0];
  for (std::size_t i = 1; i < r.op.inputs.size(); ++i)
    for (const double g : r.in(i)) overflow = std::isfinite(g) ? overflow : 1;
  r.out(1)[0] = 1 / r.in(0)[0];
}

void adjust_loss_scale(const Run& r) {
  double &scale = r.in(1)[0], &good_steps = r.in(2)[0], &skipped = r.in(3)[0];
  const bool overflow = r.in(0)[0] != 0;
  good_steps = overflow ? 0 : good_steps + 1;
  skipped += overflow ? 1 : 0;
  if (overflow) scale *= r.op.number("backoff");
  if (good_steps < static_cast<double>(r.op.integer("growth_interval"))) return;
  scale *= r.op.number("growth");
  good_steps = 0;
}

void adam(const Run& r) {
  const double b1 = r.op.number("beta1"), b2 = r.op.number("beta2"), steps = r.in(4)[0];
  for (std::size_t i = 0; i < r.in(0).size(); ++i) {
    double &w = r.in(0)[i], &m = r.in(2)[i], &s = r.in(3)[i];
    const double g = r.in(1)[i];
    m = b1 * m + (1 - b1) * g;
    s = b2 * s + (1 - b2) * g * g;
    const double mean = m / (1 - std::pow(b1, steps));
    const double square = s / (1 - std::pow(b2, steps));
    w -= r.op.number("learning_rate") *
         (mean / (std::sqrt(square) + r.op.number("epsilon")) + r.op.number("weight_decay") * w);
  }
}

// Rows and columns as sums, as the paper writes them; the op keeps means.
void adafactor(const Run& r) {
  const bool factored = r.op.inputs.size() == 5;
  Tensor &w = r.in(0), &g = r.in(1);
  const std::size_t rows = factored ? static_cast<std::size_t>(r.shape(0)[0]) : 1;
  const std::size_t columns = w.size() / rows;
  const double t = r.in(r.op.inputs.size() - 1)[0];
  const double b = 1 - std::pow(t, -r.op.number("decay_rate"));
  Tensor squares(w.size());
  const auto decay = [&](double old, double now) { return b * old + (1 - b) * now; };
  const auto squared = [&](std::size_t e) { return g[e] * g[e] + r.op.number("epsilon1"); };
  if (factored) {
    Tensor row_sums(rows), column_sums(columns);
    for (std::size_t e = 0; e < w.size(); ++e) {
      row_sums[e / columns] += squared(e);
      column_sums[e % columns] += squared(e);
    }
    double total = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      const auto n = static_cast<double>(columns);
      row_sums[i] = decay(n * r.in(2)[i], row_sums[i]);
      r.in(2)[i] = row_sums[i] / n;
      total += row_sums[i];
    }
    for (std::size_t j = 0; j < columns; ++j) {
      const auto n = static_cast<double>(rows);
      column_sums[j] = decay(n * r.in(3)[j], column_sums[j]);
      r.in(3)[j] = column_sums[j] / n;
    }
    for (std::size_t e = 0; e < w.size(); ++e)
      squares[e] = row_sums[e / columns] * column_sums[e % columns] / total;
  } else {
    for (std::size_t e = 0; e < w.size(); ++e)
      squares[e] = r.in(2)[e] = decay(r.in(2)[e], squared(e));
  }
  const auto rms = [](const Tensor& x) {
    double sum = 0;
    for (const double e : x) sum += e * e / static_cast<double>(x.size());
    return std::sqrt(sum);
  };
  Tensor update(w.size());
  for (std::size_t e = 0; e < w.size(); ++e) update[e] = g[e] / std::sqrt(squares[e]);
  const double clip = std::max(1.0, rms(update) / r.op.number("clip_threshold"));
  const double rate = r.op.integer("relative") == 1 ? std::max(r.op.number("epsilon2"), rms(w)) *
                                                          std::min(1e-2, std::pow(t, -0.5))
                                                    : r.op.number("learning_rate");
  for (std::size_t e = 0; e < w.size(); ++e) w[e] -= rate * update[e] / clip;
}

void count_step(const Run& r) { r.in(0)[0] += 1; }

void gather_rows(const Run& r) {
  Tensor& y = r.out(0);
  const auto width = static_cast<std::size_t>(r.shape(0)[1]);
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = r.in(0)[static_cast<std::size_t>(r.in(1)[i / width]) * width + i % width];
}

void gather_rows_backward(const Run& r) {
  Tensor& dx = r.out(0);
  const auto width = static_cast<std::size_t>(r.shape(1)[1]);
  for (std::size_t i = 0; i < r.in(1).size(); ++i)
    dx[static_cast<std::size_t>(r.in(0)[i / width]) * width + i % width] += r.in(1)[i];
}

void layer_norm(const Run& r) {
  Tensor &y = r.out(0), &mean = r.out(1), &inverse = r.out(2);
  const auto width = static_cast<std::size_t>(r.shape(0)[1]);
  const auto share = 1 / static_cast<double>(width);
  for (std::size_t n = 0; n < mean.size(); ++n) {
    const double* x = r.in(0).data() + n * width;
    double variance = 0;
    for (std::size_t c = 0; c < width; ++c) mean[n] += share * x[c];
    for (std::size_t c = 0; c < width; ++c) variance += share * (x[c] - mean[n]) * (x[c] - mean[n]);
    inverse[n] = 1 / std::sqrt(variance + r.op.number("epsilon"));
    for (std::size_t c = 0; c < width; ++c)
      y[n * width + c] = (x[c] - mean[n]) * inverse[n] * r.in(1)[c] + r.in(2)[c];
  }
}

// Through the mean and the variance step by step, not by the closed form.
void layer_norm_backward(const Run& r) {
  Tensor &dx = r.out(0), &dscale = r.out(1), &dshift = r.out(2);
  const std::size_t width = r.in(4).size();
  const auto share = 1 / static_cast<double>(width);
  for (std::size_t n = 0; n < r.in(2).size(); ++n) {
    const double *x = r.in(0).data() + n * width, *dy = r.in(1).data() + n * width;
    const double mean = r.in(2)[n], inverse = r.in(3)[n];
    double dmean = 0, dvariance = 0;
    for (std::size_t c = 0; c < width; ++c) {
      const double g = dy[c] * r.in(4)[c];
      dvariance -= g * (x[c] - mean) * inverse * inverse * inverse / 2;
      dmean -= g * inverse;
      dscale[c] += dy[c] * (x[c] - mean) * inverse;
      dshift[c] += dy[c];
    }
    for (std::size_t c = 0; c < width; ++c)
      dx[n * width + c] =
          dy[c] * r.in(4)[c] * inverse + share * (dmean + 2 * dvariance * (x[c] - mean));
  }
}

void gelu(const Run& r) {
  Tensor& y = r.out(0);
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = r.in(0)[i] * std::erfc(-r.in(0)[i] / std::sqrt(2)) / 2;
}

void gelu_backward(const Run& r) {
  Tensor& dx = r.out(0);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const double x = r.in(0)[i];
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    dx[i] = r.in(1)[i] * (std::erfc(-x / std::sqrt(2)) / 2 + x * density);
  }
}

void tanh(const Run& r) {
  Tensor& y = r.out(0);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::tanh(r.in(0)[i]);
}

void tanh_backward(const Run& r) {
  Tensor& dx = r.out(0);
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = r.in(1)[i] * (1 - r.in(0)[i] * r.in(0)[i]);
}

void leaky_relu(const Run& r) {
  Tensor& y = r.out(0);
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = r.in(0)[i] * (r.in(0)[i] > 0 ? 1 : r.op.number("slope"));
}

void leaky_relu_backward(const Run& r) {
  Tensor& dx = r.out(0);
  for (std::size_t i = 0; i < dx.size(); ++i)
    dx[i] = r.in(1)[i] * (r.in(0)[i] > 0 ? 1 : r.op.number("slope"));
}

// Splits heads and transposes into tensors of their own, as the kernel never does.
Tensor matrices(const Op& op, std::size_t operand, const Tensor& t, const Shape& shape, Index rows,
                Index columns) {
  const Index samples = op.list("batch")[0], heads = op.list("batch")[1];
  const bool merged = op.list("merged")[operand] != 0;
  const bool turned = op.list("transposed")[operand] != 0;
  Tensor result;
  for (Index b = 0; b < samples; ++b)
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < columns; ++j) {
          const Index r = turned ? j : i, c = turned ? i : j;
          const Index stored_rows = turned ? columns : rows,
                      stored_columns = turned ? rows : columns;
          const Index at = merged ? (b * stored_rows + r) * shape[1] + h * stored_columns + c
                                  : ((b * heads + h) * stored_rows + r) * stored_columns + c;
          result.push_back(t[static_cast<std::size_t>(at)]);
        }
  return result;
}

void batched_matmul(const Run& r) {
  Tensor& y = r.out(0);
  const Index samples = r.op.list("batch")[0], heads = r.op.list("batch")[1];
  const bool merged = r.op.list("merged")[2] != 0;
  const Shape& out = r.out_shape(0);
  const Index rows = merged ? out[0] / samples : out[2];
  const Index columns = merged ? out[1] / heads : out[3];
  const Index inner = element_count(r.shape(0)) / (samples * heads * rows);
  const Tensor a = matrices(r.op, 0, r.in(0), r.shape(0), rows, inner);
  const Tensor b = matrices(r.op, 1, r.in(1), r.shape(1), inner, columns);
  for (Index s = 0; s < samples; ++s)
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < columns; ++j) {
          double sum = 0;
          for (Index k = 0; k < inner; ++k)
            sum += a[static_cast<std::size_t>(((s * heads + h) * rows + i) * inner + k)] *
                   b[static_cast<std::size_t>(((s * heads + h) * inner + k) * columns + j)];
          const Index at = merged ? (s * rows + i) * out[1] + h * columns + j
                                  : ((s * heads + h) * rows + i) * columns + j;
          y[static_cast<std::size_t>(at)] = sum;
        }
}

void masked_softmax(const Run& r) {
  Tensor& y = r.out(0);
  const Shape& x = r.shape(0);
  const auto width = static_cast<std::size_t>(x[3]);
  const auto rows_per_sample = static_cast<std::size_t>(x[1] * x[2]);
  for (std::size_t n = 0; n < y.size() / width; ++n) {
    const double* mask = r.in(1).data() + n / rows_per_sample * width;
    double sum = 0;
    for (std::size_t k = 0; k < width; ++k)
      if (mask[k] != 0) sum += std::exp(r.op.number("scale") * r.in(0)[n * width + k]);
    for (std::size_t k = 0; k < width; ++k)
      if (mask[k] != 0)
        y[n * width + k] = std::exp(r.op.number("scale") * r.in(0)[n * width + k]) / sum;
  }
}

void causal_softmax(const Run& r) {
  Tensor& y = r.out(0);
  const auto width = static_cast<std::size_t>(r.shape(0)[3]);
  for (std::size_t n = 0; n < y.size() / width; ++n) {
    double sum = 0;
    for (std::size_t k = 0; k <= n % width; ++k)
      sum += std::exp(r.op.number("scale") * r.in(0)[n * width + k]);
    for (std::size_t k = 0; k <= n % width; ++k)
      y[n * width + k] = std::exp(r.op.number("scale") * r.in(0)[n * width + k]) / sum;
  }
}

// The whole Jacobian of each row.
void masked_softmax_backward(const Run& r) {
  Tensor& dx = r.out(0);
  const auto width = static_cast<std::size_t>(r.shape(0)[3]);
  for (std::size_t i = 0; i < dx.size(); ++i)
    for (std::size_t j = i / width * width; j < (i / width + 1) * width; ++j)
      dx[i] += r.op.number("scale") * r.in(1)[j] * r.in(0)[j] * ((i == j ? 1 : 0) - r.in(0)[i]);
}

void dropout(const Run& r) {
  Tensor &y = r.out(0), &kept = r.out(1);
  const auto key = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(r.in(1)[i]));
  };
  for (std::size_t e = 0; e < y.size(); ++e) {
    const std::uint64_t counter = e / 64 * 16 + e % 16;
    const auto words =
        philox4x32({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                    static_cast<std::uint32_t>(r.op.integer("stream")), 0},
                   {key(0), key(1)});
    kept[e] = words[e % 64 / 16] >= r.op.number("rate") * 0x1p32 ? 1 : 0;
    y[e] = kept[e] * r.in(0)[e] / (1 - r.op.number("rate"));
  }
}

void dropout_backward(const Run& r) {
  Tensor& dx = r.out(0);
  for (std::size_t e = 0; e < dx.size(); ++e)
    dx[e] = r.in(1)[e] * r.in(0)[e] / (1 - r.op.number("rate"));
}

void hold(const Run&) {}

void reorder(const Run& r) { r.out(0) = r.in(0); }

void cast(const Run& r) {
  Tensor& y = r.out(0);
  const DType type = r.program.value(r.op.outputs[0]).dtype;
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = type == DType::bf16  ? rounded_to_bf16(r.in(0)[i])
           : type == DType::f16 ? rounded_to_f16(r.in(0)[i])
                                : r.in(0)[i];
}

const std::map<std::string, void (*)(const Run&)>& kinds() {
  static const std::map<std::string, void (*)(const Run&)> kinds = {
      {"accumulate", accumulate},
      {"adjust_loss_scale", adjust_loss_scale},
      {"check_gradients", check_gradients},
      {"adafactor", adafactor},
      {"adam", adam},
      {"count_labels", count_labels},
      {"divide", divide},
      {"apply_mask", apply_mask},
      {"magnitude_mask", magnitude_mask},
      {"masked", masked},
      {"add", add},
      {"batch_norm", batch_norm},
      {"batch_norm_backward", batch_norm_backward},
      {"batch_norm_inference", batch_norm_inference},
      {"batched_matmul", batched_matmul},
      {"clip_factor", clip_factor},
      {"convolution", convolution},
      {"convolution_backward_data", convolution_backward_data},
      {"convolution_backward_weights", convolution_backward_weights},
      {"count_correct", count_correct},
      {"count_step", count_step},
      {"dropout", dropout},
      {"dropout_backward", dropout_backward},
      {"gather_rows", gather_rows},
      {"gather_rows_backward", gather_rows_backward},
      {"gelu", gelu},
      {"gelu_backward", gelu_backward},
      {"global_average_pool", global_average_pool},
      {"global_average_pool_backward", global_average_pool_backward},
      {"hold", hold},
      {"layer_norm", layer_norm},
      {"layer_norm_backward", layer_norm_backward},
      {"leaky_relu", leaky_relu},
      {"leaky_relu_backward", leaky_relu_backward},
      {"linear", linear},
      {"linear_backward_data", linear_backward_data},
      {"linear_backward_weights", linear_backward_weights},
      {"cast", cast},
      {"causal_softmax", causal_softmax},
      {"masked_softmax", masked_softmax},
      {"masked_softmax_backward", masked_softmax_backward},
      {"max_pool", max_pool},
      {"max_pool_backward", max_pool_backward},
      {"relu", relu},
      {"relu_backward", relu_backward},
      {"reorder", reorder},
      {"scale_gradient", scale_gradient},
      {"sgd_momentum", sgd_momentum},
      {"sigmoid_cross_entropy", sigmoid_cross_entropy},
      {"sigmoid_cross_entropy_backward", sigmoid_cross_entropy_backward},
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"softmax_cross_entropy_backward", softmax_cross_entropy_backward},
      {"tanh", tanh},
      {"tanh_backward", tanh_backward},
      {"transposed_convolution", transposed_convolution},
      {"two_of_four_mask", two_of_four_mask},
      {"update_statistics", update_statistics},
  };
  return kinds;
}

}  // namespace

void reference_run(const Program& program, const Op& op, Tensors& tensors) {
  const auto found = kinds().find(op.kind);
  if (found == kinds().end()) throw Error("the reference does not know " + op.kind);
  if (is_conditional(op) && tensors[op.inputs.back()][0] != 0) return;
  found->second({program, unconditional(op), tensors});
}

void reference_run(const Program& program, Tensors& tensors) {
  for (const Op& op : program.ops) reference_run(program, op, tensors);
}

// In whole units of the last of 8 bits; std::nearbyint goes to even at a tie.
double rounded_to_bf16(double x) {
  if (x == 0) return x;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -126) - 7);
  return std::nearbyint(x / unit) * unit;
}

// Of 11 bits, or of the multiples of 2^-24 near zero.
double rounded_to_f16(double x) {
  if (x == 0) return x;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  const double rounded = std::nearbyint(x / unit) * unit;
  return std::abs(rounded) > 65504 ? std::copysign(HUGE_VAL, x) : rounded;
}

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = 0xD2511F53ULL * counter[0], q = 0xCD9E8D57ULL * counter[2];
    counter = {
        static_cast<std::uint32_t>(q >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(q),
        static_cast<std::uint32_t>(p >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("HEADROOM_TEST_SEED");
    const std::uint64_t chosen = given != nullptr ? std::stoull(given) : std::random_device{}();
    std::cout << "HEADROOM_TEST_SEED=" << chosen << "\n";
    return chosen;
  }();
  return seed;
}

void fill_randomly(const Program& program, Tensors& tensors, std::mt19937_64& random,
                   std::int64_t classes) {
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<std::int64_t> label(0, classes - 1);
  for (ValueId id = 0; id < program.values.size(); ++id) {
    const Value& value = program.value(id);
    if (!value.persistent && value.role != Role::input) continue;
    Tensor& tensor = tensors[id];
    tensor.resize(static_cast<std::size_t>(element_count(value.shape)));
    const bool positive = value.name.ends_with("variance") || value.name.ends_with("square") ||
                          value.name.ends_with("steps") || value.name.ends_with("loss_scale");
    for (double& x : tensor) {
      if (value.dtype == DType::s32) x = static_cast<double>(label(random));
      if (value.dtype == DType::f32)
        x = positive ? 0.5F + std::abs(normal(random)) : normal(random);
    }
  }
}

}  // namespace headroom::testing
