// Pools of cudaMallocAsync, which hold memory in chunks of 32 MiB as drivers do. Blocks are not
// reused, so work that uses a freed block faults. A chunk is released when the stream reaches the
// call that freed the last block in it.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "harness/base/units.h"
#include "tests/cuda/simulated_gpu/memory.h"
#include "tests/cuda/simulated_gpu/refusal.h"
#include "tests/cuda/simulated_gpu/streams.h"

using namespace headroom::simulated_gpu;

struct CUmemPoolHandle_st {
  std::size_t most = 0;
  std::uint64_t threshold = 0;
  std::size_t reserved = 0;
  std::size_t used = 0;
};

namespace {

constexpr std::size_t kChunk = std::size_t{32} << 20U;
constexpr std::size_t kGranule = 4096;  // so that blocks can be hidden one by one

struct PoolBlock {
  cudaMemPool_t pool;
  std::size_t bytes;
};

std::map<void*, PoolBlock>& blocks() {
  static std::map<void*, PoolBlock> all;
  return all;
}

void shrink(CUmemPoolHandle_st& pool, std::size_t keep) {
  const std::size_t left =
      std::max(headroom::align_up(pool.used, kChunk), std::min(pool.reserved, keep));
  credit(pool.reserved - left);
  pool.reserved = left;
}

}  // namespace

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* kind) {
  const Lock lock;
  if (is_refused()) return refuse(cudaErrorUnknown);
  if (kind->allocType != cudaMemAllocationTypePinned ||
      kind->location.type != cudaMemLocationTypeDevice || kind->location.id != 0)
    return refuse(cudaErrorInvalidValue);
  *pool = new CUmemPoolHandle_st{.most = kind->maxSize};
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  const Lock lock;
  credit(pool->reserved);
  delete pool;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const Lock lock;
  if (is_refused()) return refuse(cudaErrorUnknown);
  switch (attribute) {
    case cudaMemPoolAttrReleaseThreshold:
      pool->threshold = *static_cast<std::uint64_t*>(value);
      return cudaSuccess;
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies: {
      const int on = *static_cast<int*>(value);
      return on == 0 || on == 1 ? cudaSuccess : refuse(cudaErrorInvalidValue);
    }
    default:
      return refuse(cudaErrorInvalidValue);
  }
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const Lock lock;
  if (attribute != cudaMemPoolAttrReservedMemCurrent) return refuse(cudaErrorInvalidValue);
  *static_cast<std::uint64_t*>(value) = pool->reserved;
  return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep) {
  const Lock lock;
  shrink(*pool, keep);
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** data, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  const Lock lock;
  if (captures(stream)) return refuse(cudaErrorStreamCaptureUnsupported);
  const std::size_t size = headroom::align_up(bytes, kGranule);
  const std::size_t held = headroom::align_up(pool->used + size, kChunk);
  if (pool->most != 0 && held > headroom::align_up(pool->most, kChunk))
    return refuse(cudaErrorMemoryAllocation);
  if (held > pool->reserved) {
    if (!charge(held - pool->reserved)) return refuse(cudaErrorMemoryAllocation);
    pool->reserved = held;
  }
  void* const at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return refuse(cudaErrorMemoryAllocation);
  poison(at, size);
  show(static_cast<std::byte*>(at), size);
  pool->used += size;
  blocks()[at] = {pool, size};
  *data = at;
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  const Lock lock;
  const auto found = blocks().find(data);
  if (found == blocks().end()) return refuse(cudaErrorInvalidValue);
  if (captures(stream)) return refuse(cudaErrorStreamCaptureUnsupported);
  const PoolBlock block = found->second;
  blocks().erase(found);
  block.pool->used -= block.bytes;
  // A GPU that is lost does no more work, but its memory goes all the same.
  const std::shared_ptr<void> pages(data, [bytes = block.bytes](void* at) {
    hide(static_cast<std::byte*>(at));
    munmap(at, bytes);
  });
  const cudaError_t error =
      give(stream, [pages, pool = block.pool] { shrink(*pool, pool->threshold); });
  static std::vector<std::shared_ptr<void>> kept;  // work that was queued before may use it
  if (error != cudaSuccess && !is_lost()) kept.push_back(pages);
  return error;
}
