// One op made executable on the host. For the files of this folder and compile_for_host only.
#pragma once

#include <cstdint>
#include <functional>

#include "harness/device/device.h"
#include "harness/program/program.h"

namespace headroom::host {

// Called once per step with the addresses of the op's operands; must not allocate memory.
using Kernel = std::function<void(const OpBuffers&)>;

// Primitives of oneDNN: all kinds that onednn::describe() supports.
Kernel make_library(const Op& op, const Program& program);

// Headroom's own loops, with fewer passes over memory, where channels lie in groups; the library's
// primitives elsewhere.
Kernel make_batch_norm(const Op& op, const Program& program);
Kernel make_batch_norm_backward(const Op& op, const Program& program);

// Headroom's own loops: bound by memory bandwidth, or too small to matter.
Kernel make_add(const Op& op, const Program& program);
Kernel make_relu(const Op& op, const Program& program);
Kernel make_relu_backward(const Op& op, const Program& program);
Kernel make_leaky_relu(const Op& op, const Program& program);
Kernel make_leaky_relu_backward(const Op& op, const Program& program);
Kernel make_accumulate(const Op& op, const Program& program);
Kernel make_adafactor(const Op& op, const Program& program);
Kernel make_adam8bit(const Op& op, const Program& program);
Kernel make_adam(const Op& op, const Program& program);
Kernel make_adjust_loss_scale(const Op& op, const Program& program);
Kernel make_check_gradients(const Op& op, const Program& program);
Kernel make_count_labels(const Op& op, const Program& program);
Kernel make_count_step(const Op& op, const Program& program);
Kernel make_apply_mask(const Op& op, const Program& program);
Kernel make_magnitude_mask(const Op& op, const Program& program);
Kernel make_two_of_four_mask(const Op& op, const Program& program);
Kernel make_masked(const Op& op, const Program& program);
Kernel make_clip_factor(const Op& op, const Program& program);
Kernel make_copy(const Op& op, const Program& program);
Kernel make_scale_gradient(const Op& op, const Program& program);
Kernel make_sgd_momentum(const Op& op, const Program& program);
Kernel make_divide(const Op& op, const Program& program);
Kernel make_dropout(const Op& op, const Program& program);
Kernel make_dropout_backward(const Op& op, const Program& program);
Kernel make_foreach_adam_moments(const Op& op, const Program& program);
Kernel make_foreach_adam_roots(const Op& op, const Program& program);
Kernel make_foreach_adam_weights(const Op& op, const Program& program);
Kernel make_foreach_weight_decay(const Op& op, const Program& program);
Kernel make_fused_adam(const Op& op, const Program& program);
Kernel make_fused_sgd_momentum(const Op& op, const Program& program);
Kernel make_quantise(const Op& op, const Program& program);
Kernel make_gather_rows(const Op& op, const Program& program);
Kernel make_gather_rows_backward(const Op& op, const Program& program);
Kernel make_layer_norm(const Op& op, const Program& program);
Kernel make_layer_norm_backward(const Op& op, const Program& program);
Kernel make_causal_softmax(const Op& op, const Program& program);
Kernel make_masked_softmax(const Op& op, const Program& program);
Kernel make_masked_softmax_backward(const Op& op, const Program& program);
Kernel make_touch(const Op& op, const Program& program);
Kernel make_update_statistics(const Op& op, const Program& program);
Kernel make_average_pool(const Op& op, const Program& program);
Kernel make_average_pool_backward(const Op& op, const Program& program);
Kernel make_sum_pool(const Op& op, const Program& program);
Kernel make_upsample(const Op& op, const Program& program);
Kernel make_cross_entropy(const Op& op, const Program& program);
Kernel make_cross_entropy_backward(const Op& op, const Program& program);
Kernel make_sigmoid_cross_entropy(const Op& op, const Program& program);
Kernel make_sigmoid_cross_entropy_backward(const Op& op, const Program& program);
Kernel make_count_correct(const Op& op, const Program& program);

inline const float* floats(const std::byte* data) { return reinterpret_cast<const float*>(data); }
inline float* floats(std::byte* data) { return reinterpret_cast<float*>(data); }
inline const std::int32_t* whole_numbers(const std::byte* data) {
  return reinterpret_cast<const std::int32_t*>(data);
}
inline std::size_t float_count(const Program& program, ValueId id) {
  return program.value(id).bytes / sizeof(float);
}

}  // namespace headroom::host
