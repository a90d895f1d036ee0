#include "harness/run/cell.h"

#include <fmt/format.h>

#include "harness/control/injection.h"
#include "harness/run/experiment.h"
#include "harness/run/sample.h"

namespace headroom {

std::string Cell::id() const {
  const std::string injected =
      inject.name() == kNoInjection ? "" : fmt::format(" inject={}", inject.to_string());
  return fmt::format(
      "{} on {} rules={} allocator={} execution={} pipeline={} optimizer={} steps={}+{}{}",
      workload.to_string(), device.to_string(), rules.empty() ? "default" : rules,
      allocator.to_string(), execution.to_string(), pipeline.to_string(), optimizer.to_string(),
      warmup_steps, measured_steps, injected);
}

bool is_exact_device(const Spec& device) { return device.name() == "meta"; }

std::string to_string(SampleStatus status) {
  switch (status) {
    case SampleStatus::ok:
      return "ok";
    case SampleStatus::oom:
      return "oom";
    case SampleStatus::crash:
      return "crash";
    case SampleStatus::timeout:
      return "timeout";
    case SampleStatus::unsupported:
      return "unsupported";
    case SampleStatus::invalid:
      return "invalid";
  }
  return "invalid";
}

}  // namespace headroom
