// What the program and libheadroom_cuda.so agree on: one C entry point that hands out the
// functions below. For the loader and for the module; nobody else needs it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/device/device.h"
#include "harness/program/program.h"

namespace headroom {

// What starting a part of CUDA leaves free on the GPU.
struct StartedPart {
  std::string name;  // "context", "kernels", "cudnn", "cublas"
  Bytes free_after = 0;
};

struct CudaModule {
  // Of the Headroom that built the module. The program refuses any other than its own: types of
  // the harness cross this seam.
  std::string_view version;
  // The GPU is one that tests simulate (tests/cuda/simulated_gpu): what runs on it is no evidence.
  bool simulated = false;
  // Why this machine cannot run it and what it would need; empty when it can.
  std::string (*unavailable)();
  // `capacity` 0 asks for what is free on the GPU less a reserve.
  std::unique_ptr<Device> (*create)(Bytes capacity);
  // Of the rules "cudnn" without parameters: "cudnn(library versions, the GPU's compute
  // capability)".
  std::string (*rules_identity)();
  // What doctor shows of the GPU, the driver and the libraries, by name. Makes no context.
  std::vector<std::pair<std::string, std::string>> (*describe)();
  // Starts one part after the other, as a training process does before its first tensor. Only
  // where none has been started in this process yet.
  std::vector<StartedPart> (*start_parts)();
  // Adds to a Program lowered under dense rules the workspaces that cuDNN, cuBLAS and CUB ask for.
  // Throws InputError naming the first op whose kind has no CUDA kernel yet.
  Program (*add_workspaces)(Program dense);
};

inline constexpr const char* kCudaEntryPoint = "headroom_cuda_module";
using CudaEntryPoint = const CudaModule* (*)();

}  // namespace headroom
