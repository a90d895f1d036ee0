#include "harness/device/cuda/module/facts.h"

#include <fmt/format.h>

#include "harness/device/cuda/cuda_build.h"
#include "harness/device/cuda/module/context.h"
#include "harness/device/cuda/module/kernels/own_kernel.h"
#include "harness/device/cuda/module/memory.h"

namespace headroom::cuda {
std::vector<std::pair<std::string, std::string>> describe() {
  std::vector<std::pair<std::string, std::string>> facts;
  int runtime = 0;
  require_success(cudaRuntimeGetVersion(&runtime), "to tell its version");
  facts.emplace_back("toolkit", fmt::format("CUDA {}, code for sm_{}", cuda_version(runtime),
                                            HEADROOM_CUDA_ARCHS));
  facts.emplace_back("libraries", library_versions());
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) cudaGetLastError();
  facts.emplace_back("driver", driver == 0 ? "none" : "for CUDA " + cuda_version(driver));
  if (!why_no_gpu().empty()) return facts;
  cudaDeviceProp gpu{};
  require_success(cudaGetDeviceProperties(&gpu, kGpu), "to describe the GPU");
  facts.emplace_back("GPU", fmt::format("{}, sm_{}{}, {}", gpu.name, gpu.major, gpu.minor,
                                        format_bytes(gpu.totalGlobalMem)));
  return facts;
}

std::vector<StartedPart> start_parts() {
  std::vector<StartedPart> parts;
  const auto done = [&](const char* name) { parts.push_back({name, free_bytes()}); };
  require_success(cudaSetDevice(kGpu), "to select the GPU");
  require_success(cudaFree(nullptr), "to start the GPU");  // creates the context, frees nothing
  done("context");
  require_success(find_kernel_code(), "to load a kernel");
  done("kernels");
  const auto cudnn = make_owned<cudnnDestroy>(cudnnCreate, "to start");
  done("cudnn");
  const auto cublas = make_owned<cublasLtDestroy>(cublasLtCreate, "to start");
  done("cublas");
  return parts;
}

}  // namespace headroom::cuda
