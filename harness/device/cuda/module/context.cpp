#include "harness/device/cuda/module/context.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/device/cuda/cuda_build.h"
#include "harness/device/cuda/module/kernels/own_kernel.h"

namespace headroom::cuda {
namespace {

int attribute(cudaDeviceAttr name) {
  int value = 0;
  require_success(cudaDeviceGetAttribute(&value, name, kGpu), "to describe the GPU");
  return value;
}

void require_compiled_code() {
  const cudaError_t found = find_kernel_code();
  if (found != cudaErrorNoKernelImageForDevice && found != cudaErrorInvalidDeviceFunction)
    return require_success(found, "to start the GPU");
  throw InputError(
      fmt::format("the GPU has compute capability {}, this build has code for {}; "
                  "needs a build with -Dgpu_archs={}",
                  compute_capability(), HEADROOM_CUDA_ARCHS, compute_capability()));
}

}  // namespace

int compute_capability() {
  return 10 * attribute(cudaDevAttrComputeCapabilityMajor) +
         attribute(cudaDevAttrComputeCapabilityMinor);
}

std::string cuda_version(int packed) {
  return fmt::format("{}.{}", packed / 1000, packed % 1000 / 10);
}

std::string library_versions() {
  const std::size_t cudnn = cudnnGetVersion();      // 91900 is 9.19.0
  const std::size_t cublas = cublasLtGetVersion();  // 130100 is 13.1.0
  return fmt::format("cuDNN {}.{}.{}, cuBLAS {}.{}.{}", cudnn / 10000, cudnn / 100 % 100,
                     cudnn % 100, cublas / 10000, cublas / 100 % 100, cublas % 100);
}

Context::Context() {
  require_success(cudaSetDevice(kGpu), "to select the GPU");
  require_compiled_code();
  stream_ = make_owned<cudaStreamDestroy>(cudaStreamCreateWithFlags, "to create a stream",
                                          unsigned{cudaStreamNonBlocking});
  cudnn_ = make_owned<cudnnDestroy>(cudnnCreate, "to start");
  cublas_ = make_owned<cublasLtDestroy>(cublasLtCreate, "to start");
  require_success(cudnnSetStream(cudnn_.get(), stream_.get()), "the stream");
}

cudaStream_t Context::copies() const {
  if (copies_ == nullptr)
    copies_ = make_owned<cudaStreamDestroy>(cudaStreamCreateWithFlags, "to create a stream",
                                            unsigned{cudaStreamNonBlocking});
  return copies_.get();
}

std::shared_ptr<Context> Context::acquire() {
  std::shared_ptr<Context> context = current().lock();
  if (context == nullptr) {
    context.reset(new Context());
    current() = context;
  }
  return context;
}

std::weak_ptr<Context>& Context::current() {
  static std::weak_ptr<Context> one;
  return one;
}

// Errors are ignored: a GPU that refuses this has failed before, and its next use reports that.
void Context::let_go() {
  if (!current().expired()) return;
  cudaDeviceReset();
  cudaGetLastError();
}

// The last part names the images that are kept channels-last (channels_last.h).
std::string rules_identity() {
  const std::size_t cudnn = cudnnGetVersion();      // 91900 is 9.19.0
  const std::size_t cublas = cublasLtGetVersion();  // 130100 is 13.1.0
  const int cccl = cccl_version();                  // 3000001 is 3.0.1
  return fmt::format("cudnn({}.{}.{},cublas={}.{}.{},cccl={}.{}.{},sm_{},sms={},nhwc=16bit)",
                     cudnn / 10000, cudnn / 100 % 100, cudnn % 100, cublas / 10000,
                     cublas / 100 % 100, cublas % 100, cccl / 1000000, cccl / 1000 % 1000,
                     cccl % 1000, compute_capability(), attribute(cudaDevAttrMultiProcessorCount));
}

std::string why_no_gpu() {
  int driver = 0;
  int runtime = 0;
  require_success(cudaRuntimeGetVersion(&runtime), "to tell its version");
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    cudaGetLastError();
    return fmt::format("no NVIDIA driver; needs one for CUDA {} (nvidia-smi shows it)",
                       cuda_version(runtime));
  }
  int gpus = 0;
  const cudaError_t counted = cudaGetDeviceCount(&gpus);
  cudaGetLastError();
  if (counted == cudaErrorInsufficientDriver)
    return fmt::format("the NVIDIA driver is for CUDA {}; needs one for CUDA {}",
                       cuda_version(driver), cuda_version(runtime));
  if (counted == cudaErrorNoDevice || (counted == cudaSuccess && gpus == 0))
    return "the NVIDIA driver shows no GPU; needs one (CUDA_VISIBLE_DEVICES may hide it)";
  if (counted != cudaSuccess)
    return fmt::format("the NVIDIA driver does not answer: {}", cudaGetErrorString(counted));
  return "";
}

}  // namespace headroom::cuda
