// A GPU simulated on the CPU for testing the CUDA module's own code: its calls to CUDA, cuDNN and
// cuBLASLt end here instead of in the libraries. Streams keep queued work until something waits for
// it, then run it in any order that streams and events allow; only that work can touch GPU memory.
// The simulation shows whether the module makes the right calls in the right order. It says nothing
// about nvcc, NVIDIA's libraries or time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <random>

namespace headroom::simulated_gpu {

using Work = std::function<void()>;

// Held by every function of the simulated libraries, because threads that load batches call them,
// too.
class Lock {
 public:
  Lock();

 private:
  std::lock_guard<std::recursive_mutex> held_;
};

// Returns `error` and keeps it for cudaGetLastError.
cudaError_t refuse(cudaError_t error);

// Queues work, or adds it to the graph that is being captured.
cudaError_t give(cudaStream_t stream, Work work);
// Runs all work of a stream and what it waits for; finish_all() does so for all streams.
cudaError_t finish(cudaStream_t stream);
cudaError_t finish_all();
bool captures(cudaStream_t stream);
// Whether any stream is capturing; calls that would wait for the whole device are then refused.
bool captures_anything();

// Ends the program with this message.
[[noreturn]] void stop(const char* why);

// HEADROOM_TEST_SEED if set, else a different seed in each process.
std::uint64_t seed();
std::mt19937_64& random();
// A random number in [0, count).
std::size_t any_of(std::size_t count);

}  // namespace headroom::simulated_gpu
