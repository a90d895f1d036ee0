// CUB's algorithms as loops, for the CUDA module's queue of kernels. Each step is queued on the
// stream; its temporary storage has the size it asked for and is poisoned before it runs.
#pragma once

#include <cstdint>

#include "tests/cuda/loop_queue.h"
#include "tests/cuda/simulated_gpu/memory.h"
#include "tests/cuda/simulated_gpu/streams.h"

namespace headroom::simulated_gpu {

// Like CUB, reports the temporary storage it needs when given none. `run` is called with a
// LoopQueue that is the same for the same storage, because CUB sums in the same order from run to
// run.
template <typename Run>
cudaError_t step(void* temporary, std::size_t& bytes, std::size_t needs, cudaStream_t stream,
                 Run run) {
  if (temporary == nullptr) {
    bytes = needs;
    return cudaSuccess;
  }
  const Lock lock;
  if (bytes < needs) return refuse(cudaErrorInvalidValue);
  return give(stream, [=] {
    poison(temporary, needs);
    testing::LoopQueue queue(seed() + needs, nullptr);
    run(queue);
  });
}

}  // namespace headroom::simulated_gpu
