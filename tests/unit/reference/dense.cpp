// Linear layers and losses.
#include <algorithm>
#include <cmath>

#include "tests/unit/reference/kinds.h"

namespace headroom::testing {
namespace {

// c[i,j] += Σ_k a(i,k)·b(k,j), with operands given as functions of their indices.
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

// A factor of a product; in 8 bits its values are multiplied by its scale. The scales of both
// factors are the last operands.
Tensor factor(const Run& r, std::size_t i) {
  Tensor numbers = r.in(i);
  if (is_f8(r.program.value(r.op.inputs[i]).dtype))
    for (double& x : numbers) x *= r.in(r.op.inputs.size() - 2 + i)[0];
  return numbers;
}

void linear(const Run& r) {
  Tensor& y = r.out(0);
  const Tensor x = factor(r, 0), w = factor(r, 1);
  const Index n = r.shape(0)[0], in = r.shape(0)[1], out = r.shape(1)[0];
  product(n, in, out, entry(x, in), transposed(w, in), y);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += r.in(2)[i % static_cast<std::size_t>(out)];
}

void linear_backward_data(const Run& r) {
  const Index n = r.shape(0)[0], out = r.shape(0)[1], in = r.shape(1)[1];
  const Tensor dy = factor(r, 0), w = factor(r, 1);
  product(n, out, in, entry(dy, out), entry(w, in), r.out(0));
}

void linear_backward_weights(const Run& r) {
  const Index n = r.shape(0)[0], in = r.shape(0)[1], out = r.shape(1)[1];
  const Tensor x = factor(r, 0), dy = factor(r, 1);
  product(out, n, in, transposed(dy, out), entry(x, in), r.out(0));
  Tensor& db = r.out(1);
  for (std::size_t i = 0; i < dy.size(); ++i) db[i % static_cast<std::size_t>(out)] += dy[i];
}

// Rows with label -1 are ignored.
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
    if (r.in(1)[n] < 0) continue;
    const double* logits = r.in(0).data() + n * classes;
    const double largest = *std::max_element(logits, logits + classes);
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(logits[k] - largest);
    for (std::size_t k = 0; k < classes; ++k)
      probabilities[n * classes + k] = std::exp(logits[k] - largest) / sum;
    const double hit = logits[static_cast<std::size_t>(r.in(1)[n])] - largest;
    loss[0] += (std::log(sum) - hit) / counted;
  }
}

void take_away_hits(const Run& r, const Tensor& probabilities, Tensor& gradient) {
  const auto classes = static_cast<std::size_t>(r.shape(0)[1]);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double label = r.in(1)[i / classes];
    const bool hit = label == static_cast<double>(i % classes);
    if (label >= 0) gradient[i] = (probabilities[i] - (hit ? 1 : 0)) / counted_rows(r.in(1));
  }
}

void softmax_cross_entropy_backward(const Run& r) { take_away_hits(r, r.in(0), r.out(0)); }

void softmax_cross_entropy_and_gradient(const Run& r) {
  softmax_cross_entropy(r);
  const Tensor probabilities = r.tensors[r.op.outputs[1]];
  take_away_hits(r, probabilities, r.out(1));
}

void sigmoid_cross_entropy(const Run& r) {
  Tensor& loss = r.out(0);
  const double target = r.op.number("target");
  // log σ(x) = −log(1 + e⁻ˣ) and 1 − σ(x) = σ(−x), which avoids subtracting nearly equal numbers.
  // Factoring out the larger of 1 and eˣ avoids overflow.
  const auto log_of_one_plus_exp = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  for (const double x : r.in(0))
    loss[0] += (target * log_of_one_plus_exp(-x) + (1 - target) * log_of_one_plus_exp(x)) /
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

}  // namespace

Kinds dense_kinds() {
  return {
      {"count_correct", count_correct},
      {"linear", linear},
      {"linear_backward_data", linear_backward_data},
      {"linear_backward_weights", linear_backward_weights},
      {"sigmoid_cross_entropy", sigmoid_cross_entropy},
      {"sigmoid_cross_entropy_backward", sigmoid_cross_entropy_backward},
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"softmax_cross_entropy_and_gradient", softmax_cross_entropy_and_gradient},
      {"softmax_cross_entropy_backward", softmax_cross_entropy_backward},
  };
}

}  // namespace headroom::testing
