// How long this process's threads have waited for a core that something else had. Probes beside a
// sample cannot see what happens inside it; the kernel counts it.
#pragma once

#include <cstdint>
#include <optional>

namespace headroom {

// Of all threads since each began: ready to run, and not running. Nothing where the kernel does not
// count it (CONFIG_SCHED_INFO).
std::optional<std::uint64_t> cpu_wait_ns();

}  // namespace headroom
