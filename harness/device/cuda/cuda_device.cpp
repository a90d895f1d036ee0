// Declares the device `cuda` and the lowering rules `cudnn`: names, parameters and reasons.
// Everything else is in the CUDA module, which is loaded when one of them is first used.
#include <fmt/format.h>

#include <optional>

#include "harness/base/error.h"
#include "harness/base/registry.h"
#include "harness/device/cuda/load_module.h"
#include "harness/device/device.h"
#include "harness/program/lowering/lowering.h"
#include "harness/program/lowering/workspace_limit.h"

namespace headroom {
namespace {

std::string unavailable() {
  const LoadedCudaModule& loaded = cuda_module();
  return loaded.module == nullptr ? loaded.problem : loaded.module->unavailable();
}

const CudaModule& usable_module() {
  if (const std::string reason = unavailable(); !reason.empty())
    throw InputError(fmt::format("device cuda cannot be used here: {}", reason));
  return *cuda_module().module;
}

std::unique_ptr<Device> create_cuda(const Spec& spec) {
  spec.require_known({"capacity"});
  const Bytes capacity = spec.bytes("capacity", 0);
  if (spec.has("capacity") && capacity == 0)
    throw InputError(
        fmt::format("{}: a capacity of 0 holds nothing; leave the parameter out to "
                    "take what is free",
                    spec.to_string()));
  return usable_module().create(capacity);
}

std::optional<Bytes> limit_of(const Spec& spec) {
  if (!spec.has("workspace_limit")) return std::nullopt;
  return spec.bytes("workspace_limit", 0);
}

// Layouts are plain row-major, as under the dense rules, except for images in 16 bits that
// convolutions use; the libraries add workspace.
Program lower_for_cudnn(Program program, PersistentLayouts& persistent, const Spec& spec) {
  const LoadedCudaModule& loaded = cuda_module();
  const std::optional<Bytes> limit = limit_of(spec);
  if (loaded.module == nullptr)
    throw InputError(fmt::format("lowering rules cudnn cannot be used here: {}", loaded.problem));
  const auto& dense = Registry<LoweringRules>::instance().find("dense");
  Program lowered = dense.lower(std::move(program), persistent, Spec("dense"));
  if (limit) limit_workspaces(lowered, *limit);
  return loaded.module->lower_for_gpu(std::move(lowered));
}

std::string identity(const Spec& spec) {
  std::string name = usable_module().rules_identity();
  if (const std::optional<Bytes> limit = limit_of(spec))
    name.insert(name.size() - 1, fmt::format(",workspace_limit={}", *limit));
  return name;
}

const bool kDeviceRegistered = Registry<DeviceKind>::instance().add({
    .name = "cuda",
    .summary = "The first GPU that CUDA_VISIBLE_DEVICES names. cuda(capacity=…) limits its memory; "
               "otherwise it takes all free memory except 1800 MiB",
    .default_rules = "cudnn",
    .traits = {.has_driver = true},
    .unavailable = unavailable,
    .create = create_cuda,
    .let_go =
        [] {
          if (cuda_module().module != nullptr) cuda_module().module->let_go();
        },
});

const bool kRulesRegistered = Registry<LoweringRules>::instance().add({
    .name = "cudnn",
    .summary = "Row-major layouts, but channels last for images of convolutions in 16 bits, and "
               "the workspaces that cuDNN, cuBLAS and CUB ask for on this GPU. workspace_limit= "
               "excludes convolution algorithms that ask for more",
    .parameters = {"workspace_limit"},
    .identity = identity,
    .lower = lower_for_cudnn,
});

}  // namespace
}  // namespace headroom
