// Finds and loads the CUDA module, once, when somebody first asks for the device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/device/cuda/cuda_module.h"

namespace headroom {

struct LoadedCudaModule {
  const CudaModule* module = nullptr;
  std::filesystem::path path;  // of the file that was loaded
  std::string problem;         // why there is no module and what it would need; else empty
};

// Where the module is looked for, in order: the environment variable HEADROOM_CUDA_MODULE alone
// when it is set; else beside the executable, then in the build directory for a program that was
// built there and in the installation for any other.
std::vector<std::filesystem::path> cuda_module_places();

// Loads the first of `places` that exists. It stays loaded until the process ends.
LoadedCudaModule load_cuda_module(const std::vector<std::filesystem::path>& places);

// The result for cuda_module_places(), kept.
const LoadedCudaModule& cuda_module();

}  // namespace headroom
