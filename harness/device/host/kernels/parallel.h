// Splits a range over the OpenMP threads.
#pragma once

#include <algorithm>
#include <cstddef>

namespace headroom::host {

inline constexpr std::size_t kPartFloats = 16384;  // 64 KiB of each operand

// Calls body(begin, end) on consecutive parts of [0, count), each `grain` long. A single part runs
// on the calling thread, because waking the others costs more. Bodies must not throw.
template <typename Body>
void in_parallel(std::size_t count, std::size_t grain, const Body& body) {
  const std::size_t parts = (count + grain - 1) / grain;
#pragma omp parallel for schedule(static) if (parts > 1)
  for (std::size_t part = 0; part < parts; ++part)
    body(part * grain, std::min(count, (part + 1) * grain));
}

template <typename Body>
void in_parallel(std::size_t count, const Body& body) {
  in_parallel(count, kPartFloats, body);
}

// Number of matrix rows that make up about one part.
inline std::size_t row_grain(std::size_t row_floats) {
  return std::max<std::size_t>(1, kPartFloats / std::max<std::size_t>(1, row_floats));
}

}  // namespace headroom::host

// Compiles a function once per instruction set and selects a version when the program starts,
// because users' builds have no -march. For functions without OpenMP regions, which are outlined
// before cloning. Clang does not support such clones of templates and uses a single version.
#if defined(__x86_64__) && !defined(__clang__)
#define HEADROOM_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HEADROOM_VECTORISED
#endif
