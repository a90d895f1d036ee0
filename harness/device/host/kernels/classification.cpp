// A few numbers per image: plain loops on the calling thread.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "harness/base/error.h"
#include "harness/device/host/kernels/kernel.h"

namespace headroom::host {
namespace {

struct Rows {
  std::size_t count;
  std::size_t classes;

  explicit Rows(const Value& logits)
      : count(static_cast<std::size_t>(logits.shape[0])),
        classes(static_cast<std::size_t>(logits.shape[1])) {}
};

std::size_t checked_label(const std::byte* labels, std::size_t row, std::size_t classes) {
  const std::int32_t label = reinterpret_cast<const std::int32_t*>(labels)[row];
  if (label < 0 || static_cast<std::size_t>(label) >= classes)
    throw InputError(
        fmt::format("label {} of row {} of the batch is not in 0 … {}: the data do "
                    "not fit the network",
                    label, row, classes - 1));
  return static_cast<std::size_t>(label);
}

}  // namespace

Kernel make_cross_entropy(const Op& op, const Program& program) {
  const Rows rows(program.value(op.inputs[0]));
  return [rows](const OpBuffers& buffers) {
    double loss = 0;
    for (std::size_t n = 0; n < rows.count; ++n) {
      const float* logits = floats(buffers.inputs[0]) + n * rows.classes;
      float* probabilities = floats(buffers.outputs[1]) + n * rows.classes;
      const std::size_t label = checked_label(buffers.inputs[1], n, rows.classes);
      // Shifted by the largest, so that no exponential overflows.
      const float largest = *std::max_element(logits, logits + rows.classes);
      double sum = 0;
      for (std::size_t k = 0; k < rows.classes; ++k) {
        probabilities[k] = std::exp(logits[k] - largest);
        sum += probabilities[k];
      }
      const auto scale = static_cast<float>(1 / sum);
      for (std::size_t k = 0; k < rows.classes; ++k) probabilities[k] *= scale;
      loss += std::log(sum) - (logits[label] - largest);
    }
    *floats(buffers.outputs[0]) = static_cast<float>(loss / static_cast<double>(rows.count));
  };
}

Kernel make_cross_entropy_backward(const Op& op, const Program& program) {
  const Rows rows(program.value(op.inputs[0]));
  return [rows](const OpBuffers& buffers) {
    const float share = 1.0F / static_cast<float>(rows.count);
    for (std::size_t n = 0; n < rows.count; ++n) {
      const float* probabilities = floats(buffers.inputs[0]) + n * rows.classes;
      float* gradient = floats(buffers.outputs[0]) + n * rows.classes;
      const std::size_t label = checked_label(buffers.inputs[1], n, rows.classes);
      for (std::size_t k = 0; k < rows.classes; ++k) gradient[k] = share * probabilities[k];
      gradient[label] -= share;
    }
  };
}

Kernel make_count_correct(const Op& op, const Program& program) {
  const Rows rows(program.value(op.inputs[0]));
  return [rows](const OpBuffers& buffers) {
    std::size_t correct = 0;
    for (std::size_t n = 0; n < rows.count; ++n) {
      const float* logits = floats(buffers.inputs[0]) + n * rows.classes;
      const std::size_t label = checked_label(buffers.inputs[1], n, rows.classes);
      correct += std::max_element(logits, logits + rows.classes) == logits + label ? 1 : 0;
    }
    *floats(buffers.outputs[0]) = static_cast<float>(correct);
  };
}

}  // namespace headroom::host
