#include "harness/device/cuda/module/stream_pool.h"

#include <cstdint>

#include "harness/device/cuda/module/context.h"

namespace headroom::cuda {
namespace {

class CudaPool final : public StreamPool {
 public:
  CudaPool(const StreamPoolOptions& options, Bytes capacity, cudaStream_t stream)
      : stream_(stream) {
    cudaMemPoolProps kind{};
    kind.allocType = cudaMemAllocationTypePinned;
    kind.location.type = cudaMemLocationTypeDevice;
    kind.maxSize = capacity;
    require_success(cudaGetDevice(&kind.location.id), "to name the GPU");
    pool_ = make_owned<cudaMemPoolDestroy>(cudaMemPoolCreate, "a memory pool", &kind);
    std::uint64_t threshold = options.release_threshold;
    require_success(
        cudaMemPoolSetAttribute(pool_.get(), cudaMemPoolAttrReleaseThreshold, &threshold),
        "the pool's release threshold");
    int reuse = options.reuse == StreamPoolOptions::Reuse::any_stream ? 1 : 0;
    for (const cudaMemPoolAttr way :
         {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic,
          cudaMemPoolReuseAllowInternalDependencies})
      require_success(cudaMemPoolSetAttribute(pool_.get(), way, &reuse), "the pool's reuse");
  }

  // Waits, because destroying a pool does not wait for the work that uses it. An error here comes
  // from an earlier kernel; the next synchronisation reports it.
  ~CudaPool() override { cudaStreamSynchronize(stream_); }

  std::byte* take(Bytes bytes) override {
    void* data = nullptr;
    const cudaError_t status = cudaMallocFromPoolAsync(&data, bytes, pool_.get(), stream_);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // running out is a result here, not an error
      return nullptr;
    }
    require_success(status, "memory of the pool");
    return static_cast<std::byte*>(data);
  }

  // Ignores errors, because destructors call it; see ~CudaPool.
  void give(std::byte* data) override { cudaFreeAsync(data, stream_); }

  void trim(Bytes keep) override {
    require_success(cudaStreamSynchronize(stream_), "to finish");
    require_success(cudaMemPoolTrimTo(pool_.get(), keep), "to take idle memory back");
  }

  Bytes held() const override {
    std::uint64_t bytes = 0;
    require_success(cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrReservedMemCurrent, &bytes),
                    "to tell what the pool holds");
    return bytes;
  }

 private:
  cudaStream_t stream_;
  Owned<CUmemPoolHandle_st, cudaMemPoolDestroy> pool_;
};

}  // namespace

std::unique_ptr<StreamPool> make_stream_pool(const StreamPoolOptions& options, Bytes capacity,
                                             const Context& context) {
  int gpu = 0;
  require_success(cudaGetDevice(&gpu), "to name the GPU");
  int has_pools = 0;
  require_success(cudaDeviceGetAttribute(&has_pools, cudaDevAttrMemoryPoolsSupported, gpu),
                  "to tell whether it has memory pools");
  if (has_pools == 0) return nullptr;
  return std::make_unique<CudaPool>(options, capacity, context.stream());
}

}  // namespace headroom::cuda
