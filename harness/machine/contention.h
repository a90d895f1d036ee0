// Detects whether other processes used the cores while this process was measured.
#pragma once

#include <cstdint>
#include <optional>

namespace headroom {

// How long this process's threads have waited for cores since each began, and how long the cores it
// may use have been busy since boot. Probes beside a sample cannot see what happens during it, but
// the kernel counts it (proc(5): schedstat, stat).
struct CoreTimes {
  std::uint64_t waited_ns = 0;  // time that threads were ready but not running, summed
  std::uint64_t own_ns = 0;     // CPU time of this process
  // Busy time of these cores, to about 10 ms each; absent if unknown.
  std::optional<std::uint64_t> busy_ns;
};
// Empty if the kernel does not count waits (CONFIG_SCHED_INFO).
std::optional<CoreTimes> core_times();

// Returns how much of the waiting between two readings other processes caused: at most the time
// they ran. Threads of one process also wait for each other when it has more threads than cores;
// that does not count.
std::uint64_t waited_for_others_ns(const CoreTimes& before, const CoreTimes& after);

// OpenMP threads spin for about a millisecond while they wait for each other. When another process
// has one of the cores, a step then takes up to a hundred times as long, because each thread spins
// through the other process's time slices. This limits spinning to about thirty microseconds in the
// processes that this one starts, at no visible cost on an idle machine. Settings made by the user
// are kept.
void bound_spinning();

}  // namespace headroom
