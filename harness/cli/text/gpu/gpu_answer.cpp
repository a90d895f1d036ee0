#include "harness/cli/text/gpu/gpu_answer.h"

#include <algorithm>

namespace headroom {

using virtual_gpu::Framework;
using virtual_gpu::FrameworkUse;

namespace {

// A program that ends with 0 has survived what ended a process of its own, unless nothing of it got
// the error: that of a thread, or of work in JAX that the program did not wait for.
bool has_ended_out_of_memory(const GpuAnswer& answer) {
  const auto& frameworks = answer.outcome.frameworks;
  return std::any_of(frameworks.begin(), frameworks.end(), [&](const Framework& framework) {
    return framework.ended_out_of_memory && (answer.exit_status != 0 || framework.error_was_lost);
  });
}

}  // namespace

std::string_view to_string(GpuVerdict verdict) {
  switch (verdict) {
    case GpuVerdict::fits:
      return "fits";
    case GpuVerdict::does_not_fit:
      return "does not fit";
    case GpuVerdict::over_budget:
      return "over budget";
    case GpuVerdict::failed:
      return "failed";
    case GpuVerdict::not_supported:
      return "not supported";
    case GpuVerdict::no_gpu_used:
      return "no GPU used";
  }
  return "";
}

GpuVerdict verdict_of(const GpuAnswer& answer) {
  const virtual_gpu::Outcome& outcome = answer.outcome;
  if (!outcome.not_supported.empty()) return GpuVerdict::not_supported;
  if (has_ended_out_of_memory(answer)) return GpuVerdict::does_not_fit;
  if (answer.exit_status != 0 && !outcome.was_stopped()) return GpuVerdict::failed;
  if (outcome.devices.empty()) return GpuVerdict::no_gpu_used;
  if (answer.budget && outcome.peak() > *answer.budget) return GpuVerdict::over_budget;
  return GpuVerdict::fits;
}

int steps_taken(const GpuAnswer& answer) {
  int most = 0;
  for (const Framework& framework : answer.outcome.frameworks)
    most = std::max(most, framework.steps);
  return most;
}

bool is_of_cpu(const CaptureAnswer& answer) {
  for (const Framework& framework : answer.outcome.frameworks)
    for (const FrameworkUse& use : framework.devices)
      if (use.kind == "cpu") return true;
  return false;
}

Bytes peak_of(const CaptureAnswer& answer) {
  Bytes most = 0;
  for (const Framework& framework : answer.outcome.frameworks)
    for (const FrameworkUse& use : framework.devices)
      most = std::max({most, use.peak_reserved, use.peak_allocated});
  return most;
}

}  // namespace headroom
