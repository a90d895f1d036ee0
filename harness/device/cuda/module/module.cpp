// The module's entry point and its device.
#include <fmt/format.h>

#include <utility>

#include "harness/base/error.h"
#include "harness/device/cuda/cuda_build.h"
#include "harness/device/cuda/cuda_module.h"
#include "harness/device/cuda/module/compile.h"
#include "harness/device/cuda/module/context.h"
#include "harness/device/cuda/module/events.h"
#include "harness/device/cuda/module/facts.h"
#include "harness/device/cuda/module/memory.h"
#include "harness/device/cuda/module/pinned_memory.h"

namespace headroom::cuda {
namespace {

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(Bytes capacity)
      : context_(Context::acquire()), memory_(capacity, *context_) {}

  DeviceMemory& memory() override { return memory_; }
  std::unique_ptr<DeviceMemory> make_host_memory() override {
    return std::make_unique<PinnedMemory>();
  }
  std::unique_ptr<CompiledProgram> compile(const Program& lowered) override {
    return cuda::compile(lowered);
  }
  bool computes() const override { return true; }

  void write(const Value& value, std::byte* device, std::span<const std::byte> host) override {
    copy(value, device, host.data(), host.size(), cudaMemcpyHostToDevice);
  }
  void read(const Value& value, const std::byte* device, std::span<std::byte> host) override {
    copy(value, host.data(), device, host.size(), cudaMemcpyDeviceToHost);
  }
  // Runs beside kernels queued from now on, but after kernels queued before, which may still use
  // the destination.
  void stage(const Value& value, std::byte* device, std::span<const std::byte> host) override {
    require_plain(value, host.size());
    wait_for_all(context_->copies(), context_->stream(), free_to_write_);
    require_success(cudaMemcpyAsync(device, host.data(), host.size(), cudaMemcpyHostToDevice,
                                    context_->copies()),
                    "to copy " + value.name);
    staging_ = true;
  }
  void finish_staging() override {
    if (!std::exchange(staging_, false)) return;
    require_success(cudaStreamSynchronize(context_->copies()), "to finish copies");
  }
  void synchronize() override {
    require_success(cudaStreamSynchronize(context_->stream()), "to finish");
  }
  std::optional<DeviceUsage> usage() const override {
    std::size_t free = 0;
    std::size_t total = 0;
    require_success(cudaMemGetInfo(&free, &total), "to tell how much memory is free");
    return DeviceUsage{.free = free, .total = total};
  }

 private:
  // Runs on the kernels' stream, so that it waits for them, and has finished when it returns.
  void copy(const Value& value, void* to, const void* from, std::size_t bytes,
            cudaMemcpyKind direction) {
    require_plain(value, bytes);
    require_success(cudaMemcpyAsync(to, from, bytes, direction, context_->stream()),
                    "to copy " + value.name);
    synchronize();
  }

  static void require_plain(const Value& value, std::size_t bytes) {
    if (bytes != value.bytes || !value.layout.empty())
      throw Error(fmt::format("'{}' has {} bytes in plain layout on the GPU, not {}", value.name,
                              value.bytes, bytes));
  }

  std::shared_ptr<Context> context_;
  CudaMemory memory_;
  Event free_to_write_ = make_event();
  bool staging_ = false;
};

#ifdef HEADROOM_SIMULATED_GPU
constexpr bool kSimulated = true;
#else
constexpr bool kSimulated = false;
#endif

constexpr CudaModule kModule = {
    .version = HEADROOM_VERSION,
    .simulated = kSimulated,
    .unavailable = why_no_gpu,
    .create = [](Bytes capacity) -> std::unique_ptr<Device> {
      return std::make_unique<CudaDevice>(capacity);
    },
    .rules_identity = rules_identity,
    .let_go = Context::let_go,
    .describe = describe,
    .start_parts = start_parts,
    .lower_for_gpu = lower_for_gpu,
};

}  // namespace
}  // namespace headroom::cuda

extern "C" __attribute__((visibility("default"))) const headroom::CudaModule*
headroom_cuda_module() {
  return &headroom::cuda::kModule;
}
