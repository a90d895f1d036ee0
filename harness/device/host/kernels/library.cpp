#include <fmt/format.h>

#include <dnnl.hpp>
#include <memory>
#include <vector>

#include "harness/base/error.h"
#include "harness/device/host/kernels/emulated.h"
#include "harness/device/host/kernels/kernel.h"
#include "harness/device/host/kernels/linear.h"
#include "harness/program/onednn/library_op.h"

namespace headroom::host {
namespace {

dnnl::stream& stream() {
  static dnnl::stream stream(onednn::engine());
  return stream;
}

// A primitive whose arguments are set up once, so that a step only updates addresses that changed.
// The C interface is used because the C++ one builds a map and a vector at each execution.
class LibraryKernel {
 public:
  LibraryKernel(const onednn::LibraryOp& described, const Op& op, const Program& program)
      : primitive_(described.descriptor.get()), name_(described.descriptor.impl_info_str()) {
    for (const auto& operand : described.inputs) inputs_.push_back(bind(operand));
    for (const auto& operand : described.outputs) outputs_.push_back(bind(operand));
    const auto scratchpad = described.descriptor.query_md(dnnl::query::scratchpad_md);
    if (scratchpad.get_size() > 0) workspace_ = bind({DNNL_ARG_SCRATCHPAD, scratchpad});
    Bytes end = scratchpad.get_size();
    const auto emulate = [&](const auto& operands, const std::vector<ValueId>& ids) {
      std::vector<Emulated> emulated;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        if (!operands[i].is_emulated()) continue;
        const Bytes bytes = operands[i].of_primitive().get_size();
        emulated.emplace_back(op, i, program.value(ids[i]).dtype, bytes / sizeof(float),
                              onednn::copy_begin(end));
        end = onednn::copy_begin(end) + bytes;
      }
      return emulated;
    };
    emulated_inputs_ = emulate(described.inputs, op.inputs);
    emulated_outputs_ = emulate(described.outputs, op.outputs);
    arguments_.insert(arguments_.end(), unread_arguments_.begin(), unread_arguments_.end());
  }

  void run(const OpBuffers& buffers) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) point(inputs_[i], buffers.inputs[i]);
    for (std::size_t i = 0; i < outputs_.size(); ++i) point(outputs_[i], buffers.outputs[i]);
    point(workspace_, buffers.workspace);
    for (const Emulated& emulated : emulated_inputs_) {
      emulated.copy_in(buffers);
      point(inputs_[emulated.operand()], emulated.copy(buffers));
    }
    for (const Emulated& emulated : emulated_outputs_)
      point(outputs_[emulated.operand()], emulated.copy(buffers));
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), stream().get(), static_cast<int>(arguments_.size()), arguments_.data());
    if (status != dnnl_success)
      throw DeviceError(fmt::format("oneDNN's {} failed with status {}", name_, int{status}));
    for (const Emulated& emulated : emulated_outputs_) emulated.copy_out(buffers);
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  std::size_t bind(const onednn::LibraryOperand& operand) {
    if (operand.argument == 0) return kNone;
    const dnnl::memory memory(operand.of_primitive(), onednn::engine(), DNNL_MEMORY_NONE);
    memories_.push_back(memory);
    arguments_.push_back({operand.argument, memories_.back().get()});
    addresses_.push_back(nullptr);
    if (operand.unread_argument != 0)
      unread_arguments_.push_back({operand.unread_argument, memories_.back().get()});
    return arguments_.size() - 1;
  }

  void point(std::size_t index, std::byte* address) {
    if (index == kNone || addresses_[index] == address) return;
    memories_[index].set_data_handle(address);
    addresses_[index] = address;
  }

  dnnl::primitive primitive_;
  std::string name_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<dnnl_exec_arg_t> unread_arguments_;
  std::vector<std::byte*> addresses_;
  std::vector<std::size_t> inputs_, outputs_;  // indices into arguments_
  std::size_t workspace_ = kNone;
  std::vector<Emulated> emulated_inputs_, emulated_outputs_;
};

void check_planned(const Op& op, const std::vector<onednn::LibraryOperand>& described,
                   const std::vector<onednn::Layout>& planned) {
  for (std::size_t i = 0; i < planned.size(); ++i)
    if (described[i].layout != planned[i])
      throw Error(
          fmt::format("{} ({}): operand {} was lowered to a layout that its kernel does "
                      "not take",
                      op.name, op.kind, i));
}

}  // namespace

Kernel make_library(const Op& op, const Program& program) {
  std::vector<onednn::Layout> inputs, outputs;
  for (const ValueId id : op.inputs) inputs.push_back(onednn::layout_of(program.value(id)));
  for (const ValueId id : op.outputs) outputs.push_back(onednn::layout_of(program.value(id)));
  const onednn::LibraryOp described = onednn::describe(op, inputs, outputs);
  check_planned(op, described.inputs, inputs);
  check_planned(op, described.outputs, outputs);
  const Bytes planned = op.workspace == kNoValue ? 0 : program.value(op.workspace).bytes;
  if (described.workspace_bytes() != planned)
    throw Error(fmt::format("{} ({}): its kernel needs {} bytes of workspace, lowered with {}",
                            op.name, op.kind, described.workspace_bytes(), planned));
  if (auto kernel = weight_gradient_by_blas(described, op, program)) return *std::move(kernel);
  return [kernel = std::make_shared<LibraryKernel>(described, op, program)](
             const OpBuffers& buffers) { kernel->run(buffers); };
}

}  // namespace headroom::host
