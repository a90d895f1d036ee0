#include "harness/device/cuda/module/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "harness/base/error.h"
#include "harness/device/capture.h"
#include "harness/device/cuda/module/awaited.h"
#include "harness/device/cuda/module/channels_last.h"
#include "harness/device/cuda/module/events.h"
#include "harness/device/cuda/module/graph.h"
#include "harness/device/cuda/module/kernels/kernel.h"
#include "harness/device/cuda/module/kernels/own_kernel.h"
#include "harness/program/lowering/fusion.h"
#include "harness/program/offload.h"

namespace headroom::cuda {
namespace {

using MakeKernel = std::unique_ptr<Kernel> (*)(const Context&, const Program&, const Op&);

const std::map<std::string, MakeKernel, std::less<>>& makers() {
  static const auto makers = [] {
    std::map<std::string, MakeKernel, std::less<>> all = {
        {"batched_matmul", make_matmul},
        {"convolution", make_convolution},
        {"convolution_backward_data", make_convolution_backward_data},
        {"convolution_backward_weights", make_convolution_backward_weights},
        {"copy_in", make_copy_in},
        {"copy_out", make_copy_out},
        {"linear", make_matmul},
        {"linear_backward_data", make_matmul},
        {"linear_backward_weights", make_linear_backward_weights},
        {"transposed_convolution", make_convolution_backward_data},
    };
    for (const std::string_view kind : own_kinds()) all.emplace(kind, make_own_kernel);
    return all;
  }();
  return makers;
}

MakeKernel maker_of(const Op& op) {
  const auto found = makers().find(op.kind);
  if (found != makers().end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [kind, make] : makers()) known.push_back(kind);
  throw NotSupported(
      fmt::format("device cuda has no kernel for ops of kind '{}' yet ('{}' is one); "
                  "it has {}. Run this on host or meta",
                  op.kind, op.name, fmt::join(known, ", ")));
}

class CompiledCudaProgram final : public CapturingProgram {
 public:
  CompiledCudaProgram(const Program& lowered, std::shared_ptr<Context> context)
      : context_(std::move(context)),
        awaited_(awaited_copies(lowered)),
        copies_(std::any_of(lowered.ops.begin(), lowered.ops.end(), is_transfer)) {
    for (const Op& op : lowered.ops) {
      names_.push_back(op.name);
      kernels_.push_back(maker_of(op)(*context_, lowered, op));
      const Bytes needed = kernels_.back()->workspace_bytes();
      const Bytes given = op.workspace == kNoValue ? 0 : lowered.value(op.workspace).bytes;
      if (needed != given)
        throw Error(fmt::format("{}: lowered with a workspace of {}, but needs {}", op.name,
                                format_bytes(given), format_bytes(needed)));
    }
  }

  void run(std::size_t op_index, const OpBuffers& buffers) override {
    for (const std::size_t copy : awaited_.at(op_index))
      wait(context_->stream(), kernels_.at(copy)->arrival());
    kernels_.at(op_index)->run(buffers);
  }

  std::unique_ptr<CapturedProgram> capture(std::span<const OpBuffers> buffers) override {
    return std::make_unique<GraphReplay>(make_graph_driver(*context_, copies_), [this, buffers] {
      for (std::size_t index = 0; index < buffers.size(); ++index) {
        try {
          run(index, buffers[index]);
        } catch (const DeviceError& error) {
          throw DeviceError(names_[index] + ": " + error.what());
        }
      }
    });
  }

 private:
  std::shared_ptr<Context> context_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::vector<std::size_t>> awaited_;  // for each op, the copies it waits for
  bool copies_;                                    // whether any op copies to or from the host
  std::vector<std::string> names_;                 // of the ops
};

}  // namespace

int library_int(std::int64_t dimension, const Op& op) {
  if (dimension > std::numeric_limits<int>::max())
    throw NotSupported(
        fmt::format("{}: a dimension of {} is more than cuDNN can count", op.name, dimension));
  return static_cast<int>(dimension);
}

Program lower_for_gpu(Program dense) {
  dense = fuse(std::move(dense), [](const Op& op) { return makers().contains(op.kind); });
  // Unsupported kinds are reported first, because that error is the same on every machine.
  for (const Op& op : dense.ops) maker_of(op);
  if (const std::string reason = why_no_gpu(); !reason.empty())
    throw InputError(
        fmt::format("lowering rules cudnn ask the GPU for its workspaces: {}", reason));
  const auto context = Context::acquire();
  dense = keep_channels_last(std::move(dense), [&](const Program& program, const Op& op) {
    try {
      maker_of(op)(*context, program, op);
      return true;
    } catch (const NotSupported&) {
      return false;
    }
  });
  for (Op& op : dense.ops) {
    const Bytes bytes = maker_of(op)(*context, dense, op)->workspace_bytes();
    if (bytes == 0) continue;
    Value workspace;
    workspace.name = op.name + ".workspace";
    workspace.shape = {static_cast<std::int64_t>(bytes)};
    workspace.dtype = DType::u8;
    workspace.role = Role::workspace;
    workspace.bytes = bytes;
    op.workspace = static_cast<ValueId>(dense.values.size());
    dense.values.push_back(std::move(workspace));
  }
  return dense;
}

std::unique_ptr<CompiledProgram> compile(const Program& lowered) {
  // Parameters of the rules follow the identity.
  std::string here = rules_identity();
  here.pop_back();
  if (!lowered.rules.starts_with(here + ",") && lowered.rules != here + ")")
    throw InputError(
        fmt::format("device cuda runs Programs lowered under {}; this one was lowered "
                    "under '{}'",
                    rules_identity(), lowered.rules));
  return std::make_unique<CompiledCudaProgram>(lowered, Context::acquire());
}

}  // namespace headroom::cuda
