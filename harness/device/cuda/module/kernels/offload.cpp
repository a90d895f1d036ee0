// Copies to host memory and back. Copies out run on the kernels' stream, because the memory they
// free is reused at once by work on that stream. Copies back run on a stream of their own beside
// the kernels; the first op that reads the result waits for it (awaited.h).
#include "harness/device/cuda/module/context.h"
#include "harness/device/cuda/module/events.h"
#include "harness/device/cuda/module/kernels/kernel.h"

namespace headroom::cuda {
namespace {

class CopyOut final : public Kernel {
 public:
  CopyOut(const Context& context, Bytes bytes) : context_(context), bytes_(bytes) {}

  Bytes workspace_bytes() const override { return 0; }

  // A copy back may still be reading the destination, because host buffers are reused. The copy
  // stream works in order, so waiting for its last copy is enough.
  void run(const OpBuffers& buffers) override {
    wait_for_all(context_.stream(), context_.copies(), copied_back_);
    require_success(cudaMemcpyAsync(buffers.outputs[0], buffers.inputs[0], bytes_,
                                    cudaMemcpyDeviceToHost, context_.stream()),
                    "to copy to the host");
  }

 private:
  const Context& context_;
  Bytes bytes_;
  Event copied_back_ = make_event();
};

class CopyIn final : public Kernel {
 public:
  CopyIn(const Context& context, Bytes bytes) : context_(context), bytes_(bytes) {}

  Bytes workspace_bytes() const override { return 0; }
  cudaEvent_t arrival() const override { return arrived_.get(); }

  // Waits for all work queued on the kernels' stream so far: the copy out, and any work that used
  // the destination.
  void run(const OpBuffers& buffers) override {
    wait_for_all(context_.copies(), context_.stream(), ready_);
    require_success(cudaMemcpyAsync(buffers.outputs[0], buffers.inputs[0], bytes_,
                                    cudaMemcpyHostToDevice, context_.copies()),
                    "to copy from the host");
    require_success(cudaEventRecord(arrived_.get(), context_.copies()), "an event");
  }

 private:
  const Context& context_;
  Bytes bytes_;
  Event ready_ = make_event();
  Event arrived_ = make_event();
};

}  // namespace

std::unique_ptr<Kernel> make_copy_out(const Context& context, const Program& program,
                                      const Op& op) {
  return std::make_unique<CopyOut>(context, program.value(op.inputs.at(0)).bytes);
}

std::unique_ptr<Kernel> make_copy_in(const Context& context, const Program& program, const Op& op) {
  return std::make_unique<CopyIn>(context, program.value(op.outputs.at(0)).bytes);
}

}  // namespace headroom::cuda
