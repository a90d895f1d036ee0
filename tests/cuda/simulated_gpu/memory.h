// The simulated GPU's memory: 4 GiB, in pages of 2 MiB, that the CPU cannot touch but for the work
// of a stream.
#pragma once

#include <cstddef>

namespace headroom::simulated_gpu {

inline constexpr std::size_t kTotal = std::size_t{4} << 30U;
inline constexpr std::size_t kPage = std::size_t{2} << 20U;

// While there is one, all memory that the GPU may use can be touched.
class MemoryInUse {
 public:
  MemoryInUse();
  ~MemoryInUse();
  MemoryInUse(const MemoryInUse&) = delete;
  MemoryInUse& operator=(const MemoryInUse&) = delete;
};

// Addresses that only the work of streams can touch from now on, until they are hidden.
void show(std::byte* data, std::size_t bytes);
void hide(std::byte* data);
// Whether `bytes` there are shown, all of them at once.
bool is_shown(const void* data, std::size_t bytes);

// Fills what holds no numbers yet.
void poison(void* data, std::size_t bytes);

// What is taken of kTotal, by anybody. False, and nothing taken, where it is more than there is.
bool charge(std::size_t bytes);
void credit(std::size_t bytes);
std::size_t free_memory();

}  // namespace headroom::simulated_gpu
