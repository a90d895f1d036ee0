// State that every CUDA kernel of this process shares: the GPU, one stream, one handle per library,
// and a second stream when copies run beside the kernels.
#pragma once

#include <memory>
#include <string>

#include "harness/device/cuda/module/check.h"

namespace headroom::cuda {

inline constexpr int kGpu = 0;  // the first GPU that CUDA_VISIBLE_DEVICES leaves visible

class Context {
 public:
  // Returns the process's only context, created on first use and kept as long as it is referenced.
  // Throws InputError when this build has no code for the GPU, DeviceError when the GPU refuses.
  static std::shared_ptr<Context> acquire();
  // Destroys CUDA's context of this process if this context is no longer referenced.
  static void let_go();

  cudaStream_t stream() const { return stream_.get(); }
  // A second stream, for copies beside the kernels; created on first use.
  cudaStream_t copies() const;
  cudnnHandle_t cudnn() const { return cudnn_.get(); }
  cublasLtHandle_t cublas() const { return cublas_.get(); }

 private:
  Context();
  static std::weak_ptr<Context>& current();

  // The stream is declared first, so that it outlives the libraries that may still use it.
  using Stream = Owned<CUstream_st, cudaStreamDestroy>;
  Stream stream_;
  mutable Stream copies_;
  Owned<cudnnContext, cudnnDestroy> cudnn_;
  Owned<cublasLtContext, cublasLtDestroy> cublas_;
};

// Compute capability of the GPU: 90 means 9.0.
int compute_capability();
// Formats a version that CUDA packs into one number: 13000 is "13.0".
std::string cuda_version(int packed);
std::string library_versions();  // for messages
// Identity for traces of everything that workspace sizes depend on:
// "cudnn(9.19.0,cublas=13.1.0,cccl=3.0.1,sm_90,sms=132,nhwc=16bit)". Queries the GPU but creates no
// context.
std::string rules_identity();

// Returns why this machine has no usable GPU and what it would need; empty when it has one. Creates
// no context, so that a process that only asks takes no GPU memory from one that measures.
std::string why_no_gpu();

}  // namespace headroom::cuda
