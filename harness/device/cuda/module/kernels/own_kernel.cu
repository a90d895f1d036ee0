#include "harness/device/cuda/module/kernels/own_kernel.h"

#include <cuda/std/version>

#include "harness/device/cuda/module/kernels/cub_queue.h"
#include "harness/device/cuda/module/work/works.h"
#include "harness/program/conditional.h"

namespace headroom::cuda {
namespace {

__global__ void code_probe() {}

// Null operands, for measuring the work without running it.
OpBuffers nowhere(const Op& op, std::vector<std::byte*>& nulls) {
  nulls.assign(std::max(op.inputs.size(), op.outputs.size()), nullptr);
  return {.inputs = std::span(nulls).first(op.inputs.size()),
          .outputs = std::span(nulls).first(op.outputs.size())};
}

class OwnKernel final : public Kernel {
 public:
  OwnKernel(const Context& context, const Op& op, Work<CubQueue> work)
      : stream_(context.stream()), conditional_(is_conditional(op)), work_(std::move(work)) {
    CubQueue queue(stream_);
    std::vector<std::byte*> nulls;
    work_(queue, nowhere(op, nulls));
    needs_ = queue.needs();
  }

  Bytes workspace_bytes() const override { return needs_.total(); }

  void run(const OpBuffers& buffers) override {
    const float* unless = conditional_ ? floats(buffers.inputs.back()) : nullptr;
    CubQueue queue(stream_, needs_, buffers.workspace, unless);
    work_(queue, buffers);
  }

 private:
  cudaStream_t stream_;
  bool conditional_;
  Work<CubQueue> work_;
  QueueNeeds needs_;
};

const Works<CubQueue>& works() {
  static const Works<CubQueue> all = every_work<CubQueue>();
  return all;
}

}  // namespace

std::vector<std::string_view> own_kinds() {
  std::vector<std::string_view> kinds;
  for (const auto& [kind, make] : works()) kinds.push_back(kind);
  return kinds;
}

std::unique_ptr<Kernel> make_own_kernel(const Context& context, const Program& program,
                                        const Op& op) {
  const auto make = works().at(op.kind);
  return std::make_unique<OwnKernel>(context, op, make(unconditional(op), program));
}

std::unique_ptr<Kernel> make_bias_gradient(const Context& context, const Program& program,
                                           const Op& op) {
  return std::make_unique<OwnKernel>(context, op, bias_gradient_work<CubQueue>(op, program));
}

std::unique_ptr<Kernel> make_add_bias_kernel(const Context& context, const Value& y) {
  const Op op = {.kind = "add_bias", .name = "add_bias", .inputs = {0}, .outputs = {1}};
  return std::make_unique<OwnKernel>(context, op, add_bias_work<CubQueue>(y));
}

std::unique_ptr<Kernel> make_cast_kernel(const Context& context, const Value& from,
                                         const Value& to) {
  Program program;
  program.values = {from, to};
  return make_own_kernel(context, program,
                         {.kind = "cast", .name = "cast", .inputs = {0}, .outputs = {1}});
}

std::unique_ptr<Kernel> make_transpose_kernel(const Context& context, std::int64_t rows,
                                              std::int64_t columns) {
  const Op op = {.kind = "transpose", .name = "transpose", .inputs = {0}, .outputs = {1}};
  return std::make_unique<OwnKernel>(context, op, transpose_bytes_work<CubQueue>(rows, columns));
}

std::unique_ptr<Kernel> make_matrix_addresses(const Context& context, std::int64_t calls,
                                              std::int64_t batch, const MatrixPlaces& places) {
  const Op op = {.kind = "addresses", .name = "addresses", .inputs = {0, 1}, .outputs = {2, 3}};
  return std::make_unique<OwnKernel>(context, op,
                                     matrix_addresses_work<CubQueue>(calls, batch, places));
}

int cccl_version() { return CCCL_VERSION; }

cudaError_t find_kernel_code() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, code_probe);
}

}  // namespace headroom::cuda
