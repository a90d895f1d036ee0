// GPU memory by NVML, loaded when the program runs: neither building nor starting takes a driver.
// Source: NVIDIA, "NVML API Reference Guide", device queries.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/units.h"

namespace headroom {

struct GpuUsage {
  Bytes used = 0;  // of all devices, by all processes
  Bytes free = 0;  // of all devices
  // By the processes asked for; absent where the driver names none of them while it is in use, as
  // in a container, whose pids are not the driver's.
  std::optional<Bytes> by_processes;
};

class GpuMemory {
 public:
  // Null where there is no NVML or no device; `why_not` then says so.
  static std::unique_ptr<GpuMemory> open(std::string& why_not);
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory();

  std::size_t devices() const;
  GpuUsage read(const std::vector<pid_t>& processes) const;

 private:
  struct Library;
  explicit GpuMemory(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace headroom
