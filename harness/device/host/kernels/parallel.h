// Splits a range over the OpenMP threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>

namespace headroom::host {

// Calls body(begin, end) once per thread on neighbouring parts of [0, count), cut at cache lines
// of floats. Small ranges stay on the calling thread: waking the others costs more.
template <typename Body>
void in_parallel(std::size_t count, const Body& body) {
  constexpr std::size_t kWorthWaking = 16384;
  constexpr std::size_t kLine = 16;
#pragma omp parallel if (count >= kWorthWaking)
  {
    const auto threads = static_cast<std::size_t>(omp_get_num_threads());
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    const std::size_t share = ((count + threads - 1) / threads + kLine - 1) / kLine * kLine;
    const std::size_t begin = std::min(count, thread * share);
    const std::size_t end = std::min(count, begin + share);
    if (begin < end) body(begin, end);
  }
}

}  // namespace headroom::host

// Compiled once per instruction set, chosen when the program starts: users' builds carry no
// -march. On functions without OpenMP constructs, which are outlined before cloning.
#if defined(__x86_64__)
#define HEADROOM_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HEADROOM_VECTORISED
#endif
