// GPU memory as reported by NVML. The library is loaded at run time, so neither building nor
// starting needs a driver. Source: NVIDIA, "NVML API Reference Guide", device queries.
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
  Bytes used = 0;  // on all devices, by all processes
  Bytes free = 0;  // on all devices
  // Used by the requested processes. Absent if the device is in use but the driver lists none of
  // them, as in a container, whose pids differ from the driver's.
  std::optional<Bytes> by_processes;
};

class GpuMemory {
 public:
  // Returns null if there is no NVML or no device, with the reason in `why_not`.
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
