#include "harness/device/host/kernels/kernel.h"

namespace headroom::host {

Kernel make_update_statistics(const Op& op, const Program& program) {
  const auto channels = static_cast<std::size_t>(program.value(op.inputs[0]).shape[0]);
  const auto count = static_cast<double>(op.integer("count"));
  const auto momentum = static_cast<float>(op.number("momentum"));
  const auto unbiased = static_cast<float>(count / (count - 1));
  return [=](const OpBuffers& buffers) {
    float* running_mean = floats(buffers.inputs[0]);
    float* running_variance = floats(buffers.inputs[1]);
    const float* mean = floats(buffers.inputs[2]);
    const float* variance = floats(buffers.inputs[3]);
    for (std::size_t c = 0; c < channels; ++c) {
      running_mean[c] = (1 - momentum) * running_mean[c] + momentum * mean[c];
      running_variance[c] =
          (1 - momentum) * running_variance[c] + momentum * unbiased * variance[c];
    }
  };
}

}  // namespace headroom::host
