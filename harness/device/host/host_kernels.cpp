#include "harness/device/host/host_kernels.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/program/conditional.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/onednn/layout.h"
#include "harness/program/onednn/library_op.h"

namespace headroom {
namespace {

using Maker = host::Kernel (*)(const Op&, const Program&);

// The ops that oneDNN does not compute.
const std::map<std::string_view, Maker> kOwnLoops = {
    {"accumulate", host::make_accumulate},
    {"adafactor", host::make_adafactor},
    {"adam", host::make_adam},
    {"adam8bit", host::make_adam8bit},
    {"adjust_loss_scale", host::make_adjust_loss_scale},
    {"apply_mask", host::make_apply_mask},
    {"add", host::make_add},
    {"batch_norm", host::make_batch_norm},
    {"batch_norm_add_relu", host::make_batch_norm},
    {"batch_norm_add_relu_backward", host::make_batch_norm_backward},
    {"batch_norm_backward", host::make_batch_norm_backward},
    {"batch_norm_relu", host::make_batch_norm},
    {"batch_norm_relu_backward", host::make_batch_norm_backward},
    {"causal_softmax", host::make_causal_softmax},
    {"check_gradients", host::make_check_gradients},
    {"clip_factor", host::make_clip_factor},
    {"copy_in", host::make_copy},
    {"copy_out", host::make_copy},
    {"count_correct", host::make_count_correct},
    {"count_labels", host::make_count_labels},
    {"count_step", host::make_count_step},
    {"divide", host::make_divide},
    {"dropout", host::make_dropout},
    {"dropout_backward", host::make_dropout_backward},
    {"foreach_adam_moments", host::make_foreach_adam_moments},
    {"foreach_adam_roots", host::make_foreach_adam_roots},
    {"foreach_adam_weights", host::make_foreach_adam_weights},
    {"foreach_weight_decay", host::make_foreach_weight_decay},
    {"fused_adam", host::make_fused_adam},
    {"fused_sgd_momentum", host::make_fused_sgd_momentum},
    {"gather_rows", host::make_gather_rows},
    {"gather_rows_backward", host::make_gather_rows_backward},
    {"gather_rows_backward_add", host::make_gather_rows_backward},
    {"global_average_pool", host::make_average_pool},
    {"global_average_pool_backward", host::make_average_pool_backward},
    {"hold", [](const Op&, const Program&) -> host::Kernel { return [](const OpBuffers&) {}; }},
    {"layer_norm", host::make_layer_norm},
    {"layer_norm_backward", host::make_layer_norm_backward},
    {"leaky_relu", host::make_leaky_relu},
    {"leaky_relu_backward", host::make_leaky_relu_backward},
    {"magnitude_mask", host::make_magnitude_mask},
    {"masked", host::make_masked},
    {"masked_softmax", host::make_masked_softmax},
    {"masked_softmax_backward", host::make_masked_softmax_backward},
    {"quantise", host::make_quantise},
    {"relu", host::make_relu},
    {"relu_backward", host::make_relu_backward},
    {"scale_gradient", host::make_scale_gradient},
    {"sgd_momentum", host::make_sgd_momentum},
    {"sigmoid_cross_entropy", host::make_sigmoid_cross_entropy},
    {"sigmoid_cross_entropy_backward", host::make_sigmoid_cross_entropy_backward},
    {"softmax_cross_entropy", host::make_cross_entropy},
    {"softmax_cross_entropy_and_gradient", host::make_cross_entropy},
    {"softmax_cross_entropy_backward", host::make_cross_entropy_backward},
    {"sum_pool", host::make_sum_pool},
    {"touch", host::make_touch},
    {"two_of_four_mask", host::make_two_of_four_mask},
    {"update_statistics", host::make_update_statistics},
    {"upsample", host::make_upsample},
};

Maker maker_of(const Op& op) {
  if (const auto found = kOwnLoops.find(op.kind); found != kOwnLoops.end()) return found->second;
  if (onednn::library_role(op.kind) == onednn::LibraryRole::none)
    throw Error(fmt::format("{} ({}): the host has no kernel for this kind", op.name, op.kind));
  return host::make_library;
}

host::Kernel kernel_of(const Op& op, const Program& lowered) {
  if (!is_conditional(op)) return maker_of(op)(op, lowered);
  const Op always = unconditional(op);
  return [kernel = maker_of(always)(always, lowered)](const OpBuffers& buffers) {
    const auto operands = buffers.inputs.first(buffers.inputs.size() - 1);
    if (*host::floats(buffers.inputs.back()) != 0) return;
    kernel({.inputs = operands, .outputs = buffers.outputs, .workspace = buffers.workspace});
  };
}

class HostProgram : public CompiledProgram {
 public:
  explicit HostProgram(const Program& lowered) {
    for (const Op& op : lowered.ops) kernels_.push_back(kernel_of(op, lowered));
  }
  void run(std::size_t op_index, const OpBuffers& buffers) override { kernels_[op_index](buffers); }

 private:
  std::vector<host::Kernel> kernels_;
};

void check_size(const Value& value, std::size_t plain_bytes) {
  const auto wanted = static_cast<Bytes>(element_count(value.shape)) * size_of(value.dtype);
  if (plain_bytes != wanted)
    throw Error(fmt::format("'{}' has {} bytes in row-major order, not {}", value.name, wanted,
                            plain_bytes));
}

// Copies between layouts. It runs outside training steps, so the library may allocate its own
// scratchpad.
void reorder(const onednn::Layout& from, const std::byte* source, const onednn::Layout& to,
             std::byte* target) {
  dnnl::stream stream(onednn::engine());
  dnnl::memory in(from, onednn::engine(), const_cast<std::byte*>(source));
  dnnl::memory out(to, onednn::engine(), target);
  dnnl::reorder(in, out).execute(stream, in, out);
  stream.wait();
}

}  // namespace

std::unique_ptr<CompiledProgram> compile_for_host(const Program& lowered) {
  const std::string here = fmt::format("onednn({},", onednn::library_here());
  if (!lowered.rules.starts_with(here))
    throw InputError(
        fmt::format("the host computes under rules '{}…)', but program '{}' was lowered "
                    "under '{}'; choose rules onednn, or device meta for other rules",
                    here, lowered.name, lowered.rules));
  return std::make_unique<HostProgram>(lowered);
}

void write_value(const Value& value, std::byte* device, std::span<const std::byte> plain) {
  check_size(value, plain.size());
  if (value.layout.empty()) {
    std::memcpy(device, plain.data(), plain.size());
    return;
  }
  reorder(onednn::plain_layout(value.shape, value.dtype), plain.data(), onednn::layout_of(value),
          device);
}

void read_value(const Value& value, const std::byte* device, std::span<std::byte> plain) {
  check_size(value, plain.size());
  if (value.layout.empty()) {
    std::memcpy(plain.data(), device, plain.size());
    return;
  }
  reorder(onednn::layout_of(value), device, onednn::plain_layout(value.shape, value.dtype),
          plain.data());
}

}  // namespace headroom
