// Loss scaling: checks gradients for infinities and NaN and adjusts the scale.
#include <atomic>
#include <cmath>

#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/parallel.h"

namespace headroom::host {
namespace {

// x - x is 0 for every finite number, but not for infinities and NaN.
HEADROOM_VECTORISED bool is_finite(const float* x, std::size_t begin, std::size_t end) {
  int other = 0;
  for (std::size_t i = begin; i < end; ++i) other |= x[i] - x[i] != 0 ? 1 : 0;
  return other == 0;
}

}  // namespace

Kernel make_check_gradients(const Op& op, const Program& program) {
  std::vector<std::size_t> counts;
  for (std::size_t i = 1; i < op.inputs.size(); ++i)
    counts.push_back(program.value(op.inputs[i]).bytes / sizeof(float));
  return [counts](const OpBuffers& buffers) {
    std::atomic<bool> finite = true;
    for (std::size_t i = 0; i < counts.size(); ++i)
      in_parallel(counts[i], [&](std::size_t begin, std::size_t end) {
        if (!is_finite(floats(buffers.inputs[i + 1]), begin, end)) finite = false;
      });
    *floats(buffers.outputs[0]) = finite ? 0.0F : 1.0F;
    *floats(buffers.outputs[1]) = 1 / *floats(buffers.inputs[0]);
  };
}

Kernel make_adjust_loss_scale(const Op& op, const Program&) {
  return [growth = static_cast<float>(op.number("growth")),
          backoff = static_cast<float>(op.number("backoff")),
          interval = static_cast<float>(op.integer("growth_interval"))](const OpBuffers& buffers) {
    float& scale = *floats(buffers.inputs[1]);
    float& good_steps = *floats(buffers.inputs[2]);
    if (*floats(buffers.inputs[0]) != 0) {
      scale *= backoff;
      good_steps = 0;
      *floats(buffers.inputs[3]) += 1;
    } else if (++good_steps >= interval) {
      scale *= growth;
      good_steps = 0;
    }
  };
}

}  // namespace headroom::host
