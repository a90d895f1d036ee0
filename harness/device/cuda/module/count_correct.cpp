// Counts a classifier's hits by CUB's reduction, whose temporary storage is the op's workspace.
#include "harness/device/cuda/module/count_correct.h"

#include "harness/device/cuda/module/kernel.h"

namespace headroom::cuda {
namespace {

class CountCorrect final : public Kernel {
 public:
  CountCorrect(const Context& context, const Program& program, const Op& op)
      : stream_(context.stream()), shape_(program.value(op.inputs.at(0)).shape) {
    require_success(count_correct(nullptr, bytes_, nullptr, nullptr, shape_.at(0), shape_.at(1),
                                  nullptr, stream_),
                    "the workspace size of " + op.name);
  }

  Bytes workspace_bytes() const override { return bytes_; }

  void run(const OpBuffers& buffers) override {
    require_success(
        count_correct(buffers.workspace, bytes_, reinterpret_cast<const float*>(buffers.inputs[0]),
                      reinterpret_cast<const std::int32_t*>(buffers.inputs[1]), shape_[0],
                      shape_[1], reinterpret_cast<float*>(buffers.outputs[0]), stream_),
        "a reduction");
  }

 private:
  cudaStream_t stream_;
  Shape shape_;
  std::size_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_count_correct(const Context& context, const Program& program,
                                           const Op& op) {
  return std::make_unique<CountCorrect>(context, program, op);
}

}  // namespace headroom::cuda
