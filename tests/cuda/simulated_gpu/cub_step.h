// CUB's algorithms in loops, for the CUDA module's queue of kernels: what a step is given is given
// to the stream, its temporary storage is what it asked for, and holds no numbers before.
#pragma once

#include <cstdint>

#include "tests/cuda/loop_queue.h"
#include "tests/cuda/simulated_gpu/memory.h"
#include "tests/cuda/simulated_gpu/streams.h"

namespace headroom::simulated_gpu {

// Like CUB, tells how much temporary storage it needs where it is given none. `run` is called with
// a LoopQueue, the same for the same storage: CUB adds up in the same order from run to run.
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
