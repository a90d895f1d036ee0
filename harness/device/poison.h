// Poisons bytes that an allocator holds back, so that AddressSanitizer catches accesses to them.
// Costs nothing in builds without it.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace headroom {

inline void poison([[maybe_unused]] const std::byte* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  if (data != nullptr) ASAN_POISON_MEMORY_REGION(data, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const std::byte* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  if (data != nullptr) ASAN_UNPOISON_MEMORY_REGION(data, bytes);
#endif
}

}  // namespace headroom
