#include "harness/machine/process_memory.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace headroom {

Residency read_residency() {
  Residency residency;
  std::ifstream status("/proc/self/status");
  std::string key;
  while (status >> key) {
    Bytes kibibytes = 0;
    if (key == "VmRSS:" && status >> kibibytes) residency.resident = kibibytes * kKiB;
    if (key == "VmHWM:" && status >> kibibytes) residency.high_water_mark = kibibytes * kKiB;
    if (key == "VmData:" && status >> kibibytes) residency.writable = kibibytes * kKiB;
    status.ignore(256, '\n');
  }
  return residency;
}

bool reset_high_water_mark() {
  std::ofstream control("/proc/self/clear_refs");
  control << "5" << std::flush;
  return static_cast<bool>(control);
}

std::uint64_t minor_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_minflt);
}

Bytes available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, rest; file >> key && std::getline(file, rest);)
    if (key == "MemAvailable:") return std::stoull(rest) * kKiB;
  return 0;
}

}  // namespace headroom
