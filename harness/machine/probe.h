// Measures how fast the machine is right now. Shared hosts can run at half speed for minutes; the
// probes around a sample reveal that.
#pragma once

#include <chrono>

namespace headroom {

// A slow spell of the host lasts seconds to minutes and shows in every attempt. A brief hiccup does
// not, and must not cost a pair.
inline constexpr int kProbeAttempts = 5;

// Returns the best of kProbeAttempts attempts at fused multiply-add on `threads` threads at once,
// as total GFLOP/s (an add and a multiply count as two).
double probe_gflops(int threads,
                    std::chrono::milliseconds duration = std::chrono::milliseconds{10});

// Number of cores this process may use.
int usable_cores();

}  // namespace headroom
