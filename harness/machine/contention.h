// Whether something else had the cores while this process was measured.
#pragma once

#include <cstdint>
#include <optional>

namespace headroom {

// What this process's threads waited for cores since each began, and what the cores it may use have
// done since the machine started. Probes beside a sample cannot see what happens inside it; the
// kernel counts it (proc(5): schedstat, stat).
struct CoreTimes {
  std::uint64_t waited_ns = 0;           // of all threads: ready to run, and not running
  std::uint64_t own_ns = 0;              // this process ran
  std::optional<std::uint64_t> busy_ns;  // anything ran, to some 10 ms a core; absent: not told
};
// Nothing where the kernel does not count waits (CONFIG_SCHED_INFO).
std::optional<CoreTimes> core_times();

// How much of the waiting in between is others' doing: no more than they ran. Threads of one
// process wait for each other, too, where it has more of them than cores, and that is its own
// affair.
std::uint64_t waited_for_others_ns(const CoreTimes& before, const CoreTimes& after);

// OpenMP's threads spin for about a millisecond where they wait for each other. When something else
// has one of the cores, a step then takes up to a hundred times as long, for each waits out the
// other's time slices. Lets the processes that this one starts spin for some thirty microseconds,
// which costs an idle machine nothing that shows; what the user has set stays.
void bound_spinning();

}  // namespace headroom
