#include "harness/machine/probe.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <latch>
#include <numeric>
#include <thread>
#include <vector>

#include "harness/base/duration.h"

namespace headroom {
namespace {

// Ten independent sums hide the latency of two FMA units and fit into the registers of every
// instruction set.
constexpr std::size_t kSums = 10;
constexpr int kRounds = 4000;

using Vector16 = float __attribute__((vector_size(16)));
using Vector32 = float __attribute__((vector_size(32)));
using Vector64 = float __attribute__((vector_size(64)));

// Returns the number of operations. `value` is the factor on entry and a sum on return, so that the
// compiler cannot remove the work.
template <typename Vector>
[[gnu::always_inline]] inline double multiply_add(float& value) {
  constexpr std::size_t kLanes = sizeof(Vector) / sizeof(float);
  const float factor = value;
  std::array<Vector, kSums> sums;
  for (std::size_t i = 0; i < kSums; ++i) sums[i] = Vector{} + static_cast<float>(i);
  for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 10
    for (std::size_t i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + 1.0F;
  }
  for (const Vector& sum : sums) value += sum[0];
  return 2.0 * kLanes * kSums * kRounds;
}

double portable(float& value) { return multiply_add<Vector16>(value); }
#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) double avx2(float& value) {
  return multiply_add<Vector32>(value);
}
__attribute__((target("avx512f"))) double avx512(float& value) {
  return multiply_add<Vector64>(value);
}
#endif

double (*widest())(float&) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2;
#endif
  return portable;
}

double probe_once(int threads, std::chrono::milliseconds duration) {
  std::vector<double> gflops(static_cast<std::size_t>(threads));
  std::latch start(threads);
  double (*const multiply_add)(float&) = widest();
  const auto work = [&](double& result) {
    volatile float factor = 0.5F;  // unknown to the compiler
    volatile float sink = 0;
    start.arrive_and_wait();
    const auto begin = Clock::now();
    double flops = 0;
    auto end = begin;
    for (; end - begin < duration; end = Clock::now()) {
      float value = factor;
      flops += multiply_add(value);
      sink = value;
    }
    static_cast<void>(sink);
    result = flops / static_cast<double>(std::chrono::nanoseconds(end - begin).count());
  };
  {
    std::vector<std::jthread> workers;
    for (double& result : gflops) workers.emplace_back([&work, &result] { work(result); });
  }
  return std::accumulate(gflops.begin(), gflops.end(), 0.0);
}

}  // namespace

double probe_gflops(int threads, std::chrono::milliseconds duration) {
  double best = 0;
  for (int attempt = 0; attempt < kProbeAttempts; ++attempt)
    best = std::max(best, probe_once(threads, duration));
  return best;
}

int usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0)
    return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return CPU_COUNT(&cores);
}

}  // namespace headroom
