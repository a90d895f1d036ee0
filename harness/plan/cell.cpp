#include "harness/plan/cell.h"

#include <fmt/format.h>

namespace headroom {

std::string Cell::id() const {
  const Cell usual;
  // Axes that were added later appear in the id only when they differ from the default, so that ids
  // of older runs stay valid.
  std::string others;
  const auto add = [&](std::string_view axis, const Spec& value, const Spec& otherwise) {
    if (value != otherwise) others += fmt::format(" {}={}", axis, value.to_string());
  };
  add("accumulation", accumulation, usual.accumulation);
  add("checkpointing", checkpointing, usual.checkpointing);
  add("precision", precision, usual.precision);
  add("pruning", pruning, usual.pruning);
  add("inject", inject, usual.inject);
  add("scenario", scenario, usual.scenario);
  return fmt::format(
      "{} on {} rules={} allocator={} execution={} pipeline={} optimizer={} steps={}+{}{}",
      workload.to_string(), device.to_string(), rules.empty() ? "default" : rules,
      allocator.to_string(), execution.to_string(), pipeline.to_string(), optimizer.to_string(),
      warmup_steps, measured_steps, others);
}

}  // namespace headroom
