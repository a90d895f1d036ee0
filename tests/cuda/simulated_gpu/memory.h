// The simulated GPU's memory: 4 GiB in pages of 2 MiB that the CPU can touch only while a stream's
// work runs.
#pragma once

#include <cstddef>

namespace headroom::simulated_gpu {

inline constexpr std::size_t kTotal = std::size_t{4} << 30U;
inline constexpr std::size_t kPage = std::size_t{2} << 20U;

// While an instance exists, all memory that the GPU may use can be touched.
class MemoryInUse {
 public:
  MemoryInUse();
  ~MemoryInUse();
  MemoryInUse(const MemoryInUse&) = delete;
  MemoryInUse& operator=(const MemoryInUse&) = delete;
};

// Allows the work of streams to touch these addresses until they are hidden.
void show(std::byte* data, std::size_t bytes);
void hide(std::byte* data);
// Whether all `bytes` at `data` are shown.
bool is_shown(const void* data, std::size_t bytes);

// Fills memory that holds no values yet.
void poison(void* data, std::size_t bytes);

// Charges `bytes` against free memory. Returns false and charges nothing when they do not fit.
bool charge(std::size_t bytes);
void credit(std::size_t bytes);
// Returns the free bytes of kTotal. HEADROOM_SIMULATED_GPU_OTHERS_TAKE bytes belong to other
// programs.
std::size_t free_memory();

// Takes HEADROOM_SIMULATED_GPU_KERNELS_TAKE bytes for the kernels' code when a context launches its
// first kernel, as CUDA loads it then. Returns false if so much is not free.
bool load_kernels();
void unload_kernels();

}  // namespace headroom::simulated_gpu
