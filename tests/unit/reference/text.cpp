// Text: gathering rows, layer normalisation, activations, attention, dropout; casts.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/unit/reference/f8.h"
#include "tests/unit/reference/kinds.h"

namespace headroom::testing {
namespace {

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

void gather_rows_backward_add(const Run& r) {
  gather_rows_backward(r);
  Tensor& sum = r.tensors[r.op.outputs[0]];
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += r.in(2)[i];
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

// Differentiates through the mean and the variance step by step, not by the closed form.
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

// Splits heads and transposes into separate tensors, which the kernel never does.
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

// Softmax over the row's scores for which `is_kept` holds, scaled and shifted by the largest,
// because exponentials of scores below -745 are all 0.
template <typename IsKept>
void softmax_of_row(const Run& r, Tensor& y, std::size_t n, std::size_t width, IsKept is_kept) {
  const auto score = [&](std::size_t k) { return r.op.number("scale") * r.in(0)[n * width + k]; };
  double largest = -HUGE_VAL, sum = 0;
  for (std::size_t k = 0; k < width; ++k)
    if (is_kept(k)) largest = std::max(largest, score(k));
  for (std::size_t k = 0; k < width; ++k)
    if (is_kept(k)) sum += std::exp(score(k) - largest);
  for (std::size_t k = 0; k < width; ++k)
    if (is_kept(k)) y[n * width + k] = std::exp(score(k) - largest) / sum;
}

void masked_softmax(const Run& r) {
  Tensor& y = r.out(0);
  const Shape& x = r.shape(0);
  const auto width = static_cast<std::size_t>(x[3]);
  const auto rows_per_sample = static_cast<std::size_t>(x[1] * x[2]);
  for (std::size_t n = 0; n < y.size() / width; ++n) {
    const double* mask = r.in(1).data() + n / rows_per_sample * width;
    softmax_of_row(r, y, n, width, [&](std::size_t k) { return mask[k] != 0; });
  }
}

void causal_softmax(const Run& r) {
  Tensor& y = r.out(0);
  const auto width = static_cast<std::size_t>(r.shape(0)[3]);
  for (std::size_t n = 0; n < y.size() / width; ++n)
    softmax_of_row(r, y, n, width, [&](std::size_t k) { return k <= n % width; });
}

// Computes the full Jacobian of each row.
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

void moved(const Run& r) { r.out(0) = r.in(0); }

void cast(const Run& r) {
  Tensor& y = r.out(0);
  const DType type = r.program.value(r.op.outputs[0]).dtype;
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = type == DType::bf16  ? rounded_to_bf16(r.in(0)[i])
           : type == DType::f16 ? rounded_to_f16(r.in(0)[i])
                                : r.in(0)[i];
}

// Uses single precision where rounding to 8 bits would show the difference. A tensor in 8 bits
// holds the values of its codes.
void quantise(const Run& r) {
  const DType type = r.program.value(r.op.outputs[0]).dtype;
  float largest = 0;
  for (const double x : r.in(0)) largest = std::max(largest, std::abs(static_cast<float>(x)));
  const float range = type == DType::f8e4m3 ? 448 : 57344;
  const float inverse = largest == 0 ? 1 : std::min(range / largest, std::ldexp(1.0F, 126));
  Tensor& codes = r.out(0);
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = f8_number(type, nearest_f8(type, static_cast<float>(r.in(0)[i]) * inverse));
  r.out(1)[0] = 1 / inverse;
}

}  // namespace

Kinds text_kinds() {
  return {
      {"batched_matmul", batched_matmul},
      {"cast", cast},
      {"causal_softmax", causal_softmax},
      {"copy_in", moved},
      {"copy_out", moved},
      {"dropout", dropout},
      {"dropout_backward", dropout_backward},
      {"gather_rows", gather_rows},
      {"gather_rows_backward", gather_rows_backward},
      {"gather_rows_backward_add", gather_rows_backward_add},
      {"gelu", gelu},
      {"gelu_backward", gelu_backward},
      {"hold", hold},
      {"layer_norm", layer_norm},
      {"layer_norm_backward", layer_norm_backward},
      {"leaky_relu", leaky_relu},
      {"leaky_relu_backward", leaky_relu_backward},
      {"masked_softmax", masked_softmax},
      {"masked_softmax_backward", masked_softmax_backward},
      {"quantise", quantise},
      {"reorder", moved},
      {"tanh", tanh},
      {"tanh_backward", tanh_backward},
  };
}

}  // namespace headroom::testing
