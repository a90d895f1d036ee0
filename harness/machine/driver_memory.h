// GPU memory that the driver reports as used, in total and by this process. It is read between
// steps, never inside one.
#pragma once

#include <memory>

#include "harness/device/device.h"
#include "harness/machine/gpu_memory.h"
#include "harness/machine/measured_memory.h"

namespace headroom {

class DriverWatch {
 public:
  // Must be constructed before the process has a context on the GPU.
  DriverWatch(DriverMemory& memory, const Spec& device);

  void before_first_step(const Device& device);
  void after_step(const Device& device, int step, int warmup_steps);

 private:
  struct Reading {
    Bytes used = 0;
    Bytes process = 0;
  };
  Reading read(const Device& device) const;

  DriverMemory& memory_;
  std::unique_ptr<GpuMemory> nvml_;  // null if NVML is not available
  Bytes free_before_ = 0;            // 0 if unknown
};

}  // namespace headroom
