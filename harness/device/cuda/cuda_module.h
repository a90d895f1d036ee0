// The interface between the program and libheadroom_cuda.so: one C entry point that returns the
// functions below. Only the loader and the module include it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/device/device.h"
#include "harness/program/program.h"

namespace headroom {

// Free GPU memory after one part of CUDA was started.
struct StartedPart {
  std::string name;  // "context", "kernels", "cudnn", "cublas"
  Bytes free_after = 0;
};

struct CudaModule {
  // Version of the Headroom that built the module. The program refuses any version but its own,
  // because harness types cross this interface.
  std::string_view version;
  // True for the GPU that tests simulate (tests/cuda/simulated_gpu); its runs are not evidence.
  bool simulated = false;
  // Returns why this machine cannot run the module and what it would need; empty when it can.
  std::string (*unavailable)();
  // A `capacity` of 0 stands for the GPU's free memory less a reserve.
  std::unique_ptr<Device> (*create)(Bytes capacity);
  // Returns the identity of the rules "cudnn" without parameters: "cudnn(library versions, the
  // GPU's compute capability and number of multiprocessors)".
  std::string (*rules_identity)();
  // Destroys this process's CUDA context and all in it, unless something here still uses it.
  void (*let_go)();
  // Returns what `doctor` shows of the GPU, the driver and the libraries, by name. Creates no
  // context.
  std::vector<std::pair<std::string, std::string>> (*describe)();
  // Starts the parts one after another, as a training process does before its first tensor. Call it
  // only when none has been started in this process.
  std::vector<StartedPart> (*start_parts)();
  // Fuses what one kernel computes, and adds the workspaces that cuDNN, cuBLAS and CUB ask for, in
  // a Program lowered under dense rules. Throws InputError naming the first op whose kind has no
  // CUDA kernel.
  Program (*lower_for_gpu)(Program dense);
};

inline constexpr const char* kCudaEntryPoint = "headroom_cuda_module";
using CudaEntryPoint = const CudaModule* (*)();

}  // namespace headroom
