// cuda_start: how much GPU memory is taken before the first tensor. A fresh process initialises the
// parts of CUDA one after the other, as every training process does, and asks the driver for the
// free memory after each. Only NVML knows the free memory before the context exists, and only on a
// machine with one GPU is it certain which GPU its figure belongs to. Kernels that libraries load
// lazily, at the first call that needs them, are not included: the memory that the driver reports
// for training configurations includes them.
#include <fmt/format.h>

#include <string>

#include "harness/base/registry.h"
#include "harness/device/cuda/load_module.h"
#include "harness/device/traits.h"
#include "harness/machine/gpu_memory.h"
#include "harness/plan/scenario.h"

namespace headroom {
namespace {

double fall(Bytes before, Bytes after) {
  return static_cast<double>(before) - static_cast<double>(after);
}

ScenarioResult start_on_cuda(const Cell& cell, std::uint64_t) {
  if (!traits_of(cell.device).has_driver)
    throw NotSupported(
        fmt::format("cuda_start: {} has no CUDA context to start; the device must be cuda",
                    cell.device.to_string()));
  std::string why_no_nvml;
  const auto nvml = GpuMemory::open(why_no_nvml);
  const Bytes free_before = nvml != nullptr ? nvml->read({}).free : 0;
  const auto parts = cuda_module().module->start_parts();
  ScenarioResult result;
  for (std::size_t i = 1; i < parts.size(); ++i)
    result.figures[parts[i].name + "_bytes"] = fall(parts[i - 1].free_after, parts[i].free_after);
  if (nvml == nullptr) {
    result.note = fmt::format("What the context takes is not known: {}.", why_no_nvml);
  } else if (nvml->devices() != 1) {
    result.note = "What the context takes is not known: there are several GPUs.";
  } else {
    result.figures["context_bytes"] = fall(free_before, parts.front().free_after);
    result.figures["total_bytes"] = fall(free_before, parts.back().free_after);
  }
  return result;
}

ScenarioFigure bytes(const char* name, const char* text) {
  return {.name = name, .unit = "B", .text = text};
}

const bool cuda_start_is_registered = Registry<ScenarioKind>::instance().add(
    {.name = "cuda_start",
     .summary = "What the CUDA context, the kernels and the handles of cuDNN and cuBLAS take of a "
                "GPU before the first tensor",
     .parameters = {},
     .examples = {"cuda_start"},
     .figures = {bytes("context_bytes", "bytes the CUDA context takes"),
                 bytes("kernels_bytes", "bytes the first of Headroom's own kernels takes"),
                 bytes("cudnn_bytes", "bytes a handle of cuDNN takes"),
                 bytes("cublas_bytes", "bytes a handle of cuBLAS takes"),
                 bytes("total_bytes", "bytes taken before the first tensor")},
     .check = nullptr,
     .run = start_on_cuda,
     .engine = nullptr});

}  // namespace
}  // namespace headroom
