// Optimizers, sums of gradients, masks, loss scales.
#include <algorithm>
#include <cmath>

#include "tests/unit/reference/kinds.h"

namespace headroom::testing {
namespace {

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
  std::size_t apart = 1;  // distance between neighbours along the second dimension
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

// Uses row and column sums, as the paper does; the op keeps means.
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

}  // namespace

Kinds update_kinds() {
  return {
      {"accumulate", accumulate},
      {"adafactor", adafactor},
      {"adam", adam},
      {"adjust_loss_scale", adjust_loss_scale},
      {"apply_mask", apply_mask},
      {"check_gradients", check_gradients},
      {"clip_factor", clip_factor},
      {"count_labels", count_labels},
      {"count_step", count_step},
      {"divide", divide},
      {"magnitude_mask", magnitude_mask},
      {"masked", masked},
      {"scale_gradient", scale_gradient},
      {"sgd_momentum", sgd_momentum},
      {"two_of_four_mask", two_of_four_mask},
  };
}

}  // namespace headroom::testing
