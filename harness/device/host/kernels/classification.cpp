// Losses over rows of logits: a few per image, or thousands per text.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "harness/base/error.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"
#include "harness/device/host/kernels/vector_math.h"

namespace headroom::host {
namespace {

constexpr std::int32_t kIgnored = -1;

struct LogitRows {
  std::size_t count;
  std::size_t classes;

  explicit LogitRows(const Value& logits)
      : count(static_cast<std::size_t>(logits.shape[0])),
        classes(static_cast<std::size_t>(logits.shape[1])) {}
};

// Throws for a label that is neither a class nor ignored; returns how many are not ignored.
std::size_t counted_labels(const std::int32_t* labels, const LogitRows& rows) {
  std::size_t counted = 0;
  for (std::size_t n = 0; n < rows.count; ++n) {
    if (labels[n] == kIgnored) continue;
    if (labels[n] < 0 || static_cast<std::size_t>(labels[n]) >= rows.classes)
      throw InputError(
          fmt::format("label {} of row {} of the batch is not in 0 … {}: the data do "
                      "not fit the network",
                      labels[n], n, rows.classes - 1));
    ++counted;
  }
  return counted;
}

// Returns the logarithm of the sum of exponentials minus the label's logit. `probabilities` may
// alias `logits`.
HEADROOM_VECTORISED double row_loss(const float* logits, float* probabilities, std::int32_t label,
                                    std::size_t classes) {
  const double own = logits[label];
  // Subtracts the largest logit, so that no exponential overflows.
  float largest = logits[0];
#pragma omp simd reduction(max : largest)
  for (std::size_t k = 0; k < classes; ++k) largest = logits[k] > largest ? logits[k] : largest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t k = 0; k < classes; ++k) {
    probabilities[k] = exponential(logits[k] - largest);
    sum += probabilities[k];
  }
  const float scale = 1 / sum;
  for (std::size_t k = 0; k < classes; ++k) probabilities[k] *= scale;
  return std::log(double{sum}) - (own - largest);
}

float share_of(std::size_t counted) {
  return 1.0F / static_cast<float>(std::max<std::size_t>(1, counted));
}

// `gradient` may alias `probabilities`.
HEADROOM_VECTORISED void row_gradient(const float* probabilities, float* gradient,
                                      std::int32_t label, float share, std::size_t classes) {
#pragma omp simd
  for (std::size_t k = 0; k < classes; ++k) gradient[k] = share * probabilities[k];
  gradient[label] -= share;
}

}  // namespace

// The sum runs over fixed groups of rows, so that it does not depend on the number of threads.
Kernel make_cross_entropy(const Op& op, const Program& program) {
  const LogitRows rows(program.value(op.inputs[0]));
  const bool goes_on = op.kind == "softmax_cross_entropy_and_gradient";
  return [rows, goes_on](const OpBuffers& buffers) {
    const float* logits = floats(buffers.inputs[0]);
    const std::int32_t* labels = whole_numbers(buffers.inputs[1]);
    float* result = floats(buffers.outputs[1]);
    const std::size_t counted = counted_labels(labels, rows);
    const auto row_loss_or_zeros = [&](std::size_t n) {
      float* row = result + n * rows.classes;
      if (labels[n] == kIgnored) {
        std::fill_n(row, rows.classes, 0.0F);
        return 0.0;
      }
      const double loss = row_loss(logits + n * rows.classes, row, labels[n], rows.classes);
      if (goes_on) row_gradient(row, row, labels[n], share_of(counted), rows.classes);
      return loss;
    };
    std::array<double, 256> sums{};
    const std::size_t group = (rows.count + sums.size() - 1) / sums.size();
    in_parallel(sums.size(), std::max<std::size_t>(1, row_grain(rows.classes) / group),
                [&](std::size_t begin, std::size_t end) {
                  for (std::size_t g = begin; g < end; ++g)
                    for (std::size_t n = g * group; n < std::min(rows.count, (g + 1) * group); ++n)
                      sums[g] += row_loss_or_zeros(n);
                });
    double loss = 0;
    for (const double sum : sums) loss += sum;
    *floats(buffers.outputs[0]) =
        static_cast<float>(loss / static_cast<double>(std::max<std::size_t>(1, counted)));
  };
}

Kernel make_cross_entropy_backward(const Op& op, const Program& program) {
  const LogitRows rows(program.value(op.inputs[0]));
  return [rows](const OpBuffers& buffers) {
    const std::int32_t* labels = whole_numbers(buffers.inputs[1]);
    const std::size_t counted = counted_labels(labels, rows);
    const float share = share_of(counted);
    in_parallel(rows.count, row_grain(rows.classes), [&](std::size_t begin, std::size_t end) {
      for (std::size_t n = begin; n < end; ++n) {
        float* gradient = floats(buffers.outputs[0]) + n * rows.classes;
        if (labels[n] == kIgnored)
          std::fill_n(gradient, rows.classes, 0.0F);
        else
          row_gradient(floats(buffers.inputs[0]) + n * rows.classes, gradient, labels[n], share,
                       rows.classes);
      }
    });
  };
}

// One logit per image: a plain loop on the calling thread.
Kernel make_sigmoid_cross_entropy(const Op& op, const Program& program) {
  const std::int64_t count = element_count(program.value(op.inputs[0]).shape);
  return [count, target = op.number("target")](const OpBuffers& buffers) {
    const float* logits = floats(buffers.inputs[0]);
    double loss = 0;
    // -log sigmoid(x) = log(1 + e^-x), rearranged so that nothing overflows.
    for (std::int64_t i = 0; i < count; ++i) {
      const double x = logits[i];
      loss += std::max(x, 0.0) - x * target + std::log1p(std::exp(-std::abs(x)));
    }
    *floats(buffers.outputs[0]) = static_cast<float>(loss / static_cast<double>(count));
  };
}

Kernel make_sigmoid_cross_entropy_backward(const Op& op, const Program& program) {
  const std::int64_t count = element_count(program.value(op.inputs[0]).shape);
  return [count, target = op.number("target")](const OpBuffers& buffers) {
    const float* logits = floats(buffers.inputs[0]);
    for (std::int64_t i = 0; i < count; ++i) {
      const double sigmoid = 1 / (1 + std::exp(-double{logits[i]}));
      floats(buffers.outputs[0])[i] =
          static_cast<float>((sigmoid - target) / static_cast<double>(count));
    }
  };
}

Kernel make_count_labels(const Op& op, const Program& program) {
  const std::int64_t rows = element_count(program.value(op.inputs[0]).shape);
  return [rows](const OpBuffers& buffers) {
    const std::int32_t* labels = whole_numbers(buffers.inputs[0]);
    *floats(buffers.outputs[0]) = static_cast<float>(
        std::count_if(labels, labels + rows, [](std::int32_t label) { return label >= 0; }));
  };
}

Kernel make_count_correct(const Op& op, const Program& program) {
  const LogitRows rows(program.value(op.inputs[0]));
  return [rows](const OpBuffers& buffers) {
    const std::int32_t* labels = whole_numbers(buffers.inputs[1]);
    counted_labels(labels, rows);
    std::size_t correct = 0;
    for (std::size_t n = 0; n < rows.count; ++n) {
      const float* logits = floats(buffers.inputs[0]) + n * rows.classes;
      correct += std::max_element(logits, logits + rows.classes) == logits + labels[n] ? 1 : 0;
    }
    *floats(buffers.outputs[0]) = static_cast<float>(correct);
  };
}

}  // namespace headroom::host
