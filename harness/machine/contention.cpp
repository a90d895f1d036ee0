#include "harness/machine/contention.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>

namespace headroom {
namespace {

std::optional<std::uint64_t> thread_waits_ns() {
  std::uint64_t total = 0;
  bool counted = false;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream file(thread.path() / "schedstat");
    std::uint64_t ran = 0;
    std::uint64_t waited = 0;
    // The file is gone if the thread has ended meanwhile.
    if (!(file >> ran >> waited)) continue;
    total += waited;
    counted = counted || ran > 0;
  }
  if (!counted) return std::nullopt;
  return total;
}

std::uint64_t own_ns() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return std::chrono::nanoseconds(std::chrono::seconds{time.tv_sec} +
                                    std::chrono::microseconds{time.tv_usec})
        .count();
  };
  return static_cast<std::uint64_t>(ns(usage.ru_utime) + ns(usage.ru_stime));
}

// Core number in "cpu12"; none for "cpu" alone, which is the sum of all cores.
std::optional<std::size_t> core_of(const std::string& name) {
  std::size_t core = 0;
  if (name.rfind("cpu", 0) != 0) return std::nullopt;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + 3, end, core);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return core;
}

// Returns the busy time of the cores this process may use: everything in /proc/stat except idle
// time and waiting for disks.
std::optional<std::uint64_t> busy_ns() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return std::nullopt;
  std::ifstream file("/proc/stat");
  std::uint64_t ticks = 0;
  bool told = false;
  for (std::string name; file >> name;
       file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    const auto core = core_of(name);
    if (!core || *core >= CPU_SETSIZE || !CPU_ISSET(*core, &usable)) continue;
    // user, nice, system, idle, iowait, irq, softirq, steal
    std::array<std::uint64_t, 8> times{};
    for (std::uint64_t& time : times) file >> time;
    if (!file) return std::nullopt;
    ticks += std::accumulate(times.begin(), times.end(), std::uint64_t{0}) - times[3] - times[4];
    told = true;
  }
  if (!told) return std::nullopt;
  return ticks *
         (std::uint64_t{1'000'000'000} / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace

std::optional<CoreTimes> core_times() {
  const auto waited = thread_waits_ns();
  if (!waited) return std::nullopt;
  return CoreTimes{.waited_ns = *waited, .own_ns = own_ns(), .busy_ns = busy_ns()};
}

std::uint64_t waited_for_others_ns(const CoreTimes& before, const CoreTimes& after) {
  // The sum no longer contains the waits of threads that ended in between.
  const std::uint64_t waited = after.waited_ns - std::min(before.waited_ns, after.waited_ns);
  if (!before.busy_ns || !after.busy_ns) return waited;
  const std::uint64_t busy = *after.busy_ns - *before.busy_ns;
  const std::uint64_t own = after.own_ns - before.own_ns;
  return std::min(waited, busy - std::min(busy, own));
}

void bound_spinning() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "10000", 0);
}

}  // namespace headroom
