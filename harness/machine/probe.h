// How fast is this machine right now? Shared hosts deliver half their speed for minutes at a
// time; a sample taken then is marked by the probes around it.
#pragma once

#include <chrono>

namespace headroom {

// A slow spell of the host lasts seconds to minutes and shows in every attempt; a passing hiccup
// of the system does not, and must not cost a pair.
inline constexpr int kProbeAttempts = 5;

// The best of kProbeAttempts of fused multiply-add on `threads` threads at once; GFLOP/s all
// together (an add and a multiply count as two).
double probe_gflops(int threads,
                    std::chrono::milliseconds duration = std::chrono::milliseconds{10});

// Cores this process may use.
int usable_cores();

}  // namespace headroom
