// A GPU simulated on the CPU, for the CUDA module's own code: its calls to CUDA, cuDNN and cuBLASLt
// end here instead of at the libraries. Streams keep what they are given until somebody waits for
// it, and then do it in any order that streams and events allow; memory can be touched by that work
// only. It shows whether the module asks for the right things in the right order. It says nothing
// of what nvcc and NVIDIA's libraries make of them, and nothing of time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <random>

namespace headroom::simulated_gpu {

using Work = std::function<void()>;

// Every function of the simulated libraries holds it: loaders of batches call from other threads.
class Lock {
 public:
  Lock();

 private:
  std::lock_guard<std::recursive_mutex> held_;
};

// Returns `error` and keeps it for cudaGetLastError.
cudaError_t refuse(cudaError_t error);

// Keeps work for later, or puts it into the graph that is being captured.
cudaError_t give(cudaStream_t stream, Work work);
// Does all work of a stream, and what it waits for; all streams'.
cudaError_t finish(cudaStream_t stream);
cudaError_t finish_all();
bool captures(cudaStream_t stream);
// Whether any stream does: what would wait for all of the device is refused then.
bool captures_anything();

// HEADROOM_TEST_SEED, else another in each process.
std::uint64_t seed();
std::mt19937_64& random();
// At least 0, less than `count`.
std::size_t any_of(std::size_t count);

}  // namespace headroom::simulated_gpu
