#include "harness/machine/driver_memory.h"
#include "harness/device/traits.h"

#include <unistd.h>

#include <algorithm>
#include <string>

namespace headroom {
namespace {

void raise(Moments& moments, int step, int warmup_steps, Bytes bytes) {
  if (step == 1) moments.after_step_1 = bytes;
  Bytes& part = step <= warmup_steps ? moments.warmup_peak : moments.steady_peak;
  part = std::max(part, bytes);
  moments.overall_peak = std::max(moments.overall_peak, bytes);
}

}  // namespace

DriverWatch::DriverWatch(DriverMemory& memory, const Spec& device) : memory_(memory) {
  if (!traits_of(device).has_driver) return;
  std::string why_not;
  nvml_ = GpuMemory::open(why_not);
  // With several GPUs, which one is used is known only once there is a context.
  if (nvml_ != nullptr && nvml_->devices() == 1) free_before_ = nvml_->read({}).free;
}

DriverWatch::Reading DriverWatch::read(const Device& device) const {
  const auto usage = device.usage();
  if (!usage) return {};
  Reading reading{.used = usage->total - usage->free};
  if (nvml_ != nullptr) reading.process = nvml_->read({::getpid()}).by_processes.value_or(0);
  return reading;
}

void DriverWatch::before_first_step(const Device& device) {
  // NVML and CUDA report different totals but agree on free memory.
  if (const auto usage = device.usage(); usage && free_before_ != 0)
    memory_.baseline = usage->total - std::min(usage->total, free_before_);
  const Reading now = read(device);
  memory_.used.initial = memory_.used.overall_peak = now.used;
  memory_.process.initial = memory_.process.overall_peak = now.process;
}

void DriverWatch::after_step(const Device& device, int step, int warmup_steps) {
  const Reading now = read(device);
  raise(memory_.used, step, warmup_steps, now.used);
  raise(memory_.process, step, warmup_steps, now.process);
}

}  // namespace headroom
