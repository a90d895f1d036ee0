// What every CUDA kernel of this process shares: the GPU, one stream, one handle per library, and a
// stream for copies where there are any beside the kernels.
#pragma once

#include <memory>
#include <string>

#include "harness/device/cuda/module/check.h"

namespace headroom::cuda {

inline constexpr int kGpu = 0;  // the first one CUDA_VISIBLE_DEVICES leaves visible

class Context {
 public:
  // The process's one context, made on first use and kept while somebody holds it. Throws
  // InputError when this build has no code for the GPU, DeviceError when the GPU refuses.
  static std::shared_ptr<Context> acquire();

  cudaStream_t stream() const { return stream_.get(); }
  // A second one, for copies beside the kernels; made by the first who asks.
  cudaStream_t copies() const;
  cudnnHandle_t cudnn() const { return cudnn_.get(); }
  cublasLtHandle_t cublas() const { return cublas_.get(); }

 private:
  Context();

  // The stream comes first: it outlives the libraries that may still use it.
  using Stream = Owned<CUstream_st, cudaStreamDestroy>;
  Stream stream_;
  mutable Stream copies_;
  Owned<cudnnContext, cudnnDestroy> cudnn_;
  Owned<cublasLtContext, cublasLtDestroy> cublas_;
};

// Of the GPU: 90 is 9.0.
int compute_capability();
// Major and minor as CUDA packs them: 13000 is "13.0".
std::string cuda_version(int packed);
std::string library_versions();  // for people
// For traces: "cudnn(9.19.0,cublas=13.1.0,sm_90)", what workspace sizes depend on. Of this GPU, but
// makes no context.
std::string rules_identity();

// Why this machine has no GPU to use and what it would need; empty when it has one. Makes no
// context: a process that only asks takes no memory of the GPU from those that measure.
std::string why_no_gpu();

}  // namespace headroom::cuda
