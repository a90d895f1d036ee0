// Finds and loads the CUDA module once, when the device is first asked for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/device/cuda/cuda_module.h"

namespace headroom {

struct LoadedCudaModule {
  const CudaModule* module = nullptr;
  std::filesystem::path path;  // the loaded file
  std::string problem;         // why no module was loaded and what it would need; else empty
};

// Places where the module is looked for, in order. If the environment variable HEADROOM_CUDA_MODULE
// is set, it is the only place. Otherwise: beside the executable, then in the build directory (for
// a program run from its build) or in the installation (for any other).
std::vector<std::filesystem::path> cuda_module_places();

// Loads the first of `places` that exists. It stays loaded until the process ends.
LoadedCudaModule load_cuda_module(const std::vector<std::filesystem::path>& places);

// Returns the cached result for cuda_module_places().
const LoadedCudaModule& cuda_module();

}  // namespace headroom
