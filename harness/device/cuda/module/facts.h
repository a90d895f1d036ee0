// Facts about the GPU and about CUDA's own memory, for `doctor` and the scenario cuda_start.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/device/cuda/cuda_module.h"

namespace headroom::cuda {

std::vector<std::pair<std::string, std::string>> describe();  // see CudaModule::describe
std::vector<StartedPart> start_parts();                       // see CudaModule::start_parts

}  // namespace headroom::cuda
