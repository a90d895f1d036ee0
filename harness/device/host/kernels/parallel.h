// Splits a range over the OpenMP threads.
#pragma once

#include <algorithm>
#include <cstddef>

namespace headroom::host {

// Calls body(begin, end) on neighbouring parts of [0, count). One part stays on the calling
// thread: waking the others costs more.
template <typename Body>
void in_parallel(std::size_t count, const Body& body) {
  constexpr std::size_t kPart = 16384;  // floats: 64 KiB of each operand
  const std::size_t parts = (count + kPart - 1) / kPart;
#pragma omp parallel for schedule(static) if (parts > 1)
  for (std::size_t part = 0; part < parts; ++part)
    body(part * kPart, std::min(count, (part + 1) * kPart));
}

}  // namespace headroom::host

// Compiled once per instruction set, chosen when the program starts: users' builds carry no
// -march. On functions without OpenMP constructs, which are outlined before cloning.
#if defined(__x86_64__)
#define HEADROOM_VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HEADROOM_VECTORISED
#endif
