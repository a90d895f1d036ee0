// How long this process's threads have waited for a core that something else had. Probes beside a
// sample cannot see what happens inside it; the kernel counts it.
#pragma once

#include <cstdint>
#include <optional>

namespace headroom {

// Of all threads since each began: ready to run, and not running. Nothing where the kernel does not
// count it (CONFIG_SCHED_INFO).
std::optional<std::uint64_t> cpu_wait_ns();

// OpenMP's threads spin for about a millisecond where they wait for each other. When something else
// has one of the cores, a step then takes up to a hundred times as long, for each waits out the
// other's time slices. Lets the processes that this one starts spin for some thirty microseconds,
// which costs an idle machine nothing that shows; what the user has set stays.
void bound_spinning();

}  // namespace headroom
