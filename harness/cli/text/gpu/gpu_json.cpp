#include "harness/cli/text/gpu/gpu_answer.h"

#include <nlohmann/json.hpp>

namespace headroom {
namespace {

using nlohmann::ordered_json;
using virtual_gpu::Framework;
using virtual_gpu::FrameworkUse;
using virtual_gpu::Share;

ordered_json to_json(const std::vector<Share>& shares) {
  ordered_json result = ordered_json::array();
  for (const Share& share : shares)
    result.push_back({{"name", share.name}, {"bytes", share.bytes}});
  return result;
}

ordered_json to_json(const std::vector<GpuVariant>& variants, const char* kind) {
  ordered_json result = ordered_json::array();
  for (const GpuVariant& variant : variants)
    result.push_back({{kind, variant.what},
                      {"verdict", to_string(variant.verdict)},
                      {"peak_bytes", variant.peak}});
  return result;
}

ordered_json to_json(const std::vector<virtual_gpu::ModuleShare>& modules) {
  ordered_json result = ordered_json::array();
  for (const virtual_gpu::ModuleShare& module : modules)
    result.push_back({{"name", module.name},
                      {"pattern", module.pattern},
                      {"bytes", module.bytes},
                      {"roles", module.roles}});
  return result;
}

ordered_json to_json(const FrameworkUse& use) {
  ordered_json json = {{"device", use.device},
                       {"kind", use.kind},
                       {"peak_requested_bytes", use.peak_requested},
                       {"peak_allocated_bytes", use.peak_allocated},
                       {"peak_reserved_bytes", use.peak_reserved},
                       {"peak_phase", use.phase},
                       {"roles", to_json(use.roles)},
                       {"lines", to_json(use.lines)},
                       {"modules", to_json(use.modules)},
                       {"phase_peak_bytes", use.phase_peaks}};
  if (use.card_memory > 0) {
    json["card"] = use.card;
    json["card_memory_bytes"] = use.card_memory;
    json["beside_allocator_bytes"] = use.beside_allocator;
  }
  return json;
}

ordered_json to_json(const Framework& framework) {
  ordered_json devices = ordered_json::array(), failures = ordered_json::array();
  for (const FrameworkUse& use : framework.devices) devices.push_back(to_json(use));
  for (const auto& event : framework.out_of_memory)
    failures.push_back(
        {{"device", event.device}, {"requested_bytes", event.requested}, {"line", event.line}});
  return {{"name", framework.name},
          {"pid", framework.pid},
          {"steps", framework.steps},
          {"stopped_at_step", framework.stopped_at_step},
          {"error", framework.error},
          {"out_of_memory", failures},
          {"devices", devices},
          {"snapshot", framework.snapshot},
          {"differences", framework.differences}};
}

// Whether cuDNN itself chose the workspaces. The stand-in records this name if it had no cuDNN, or
// one too old, to ask for a workspace.
bool cudnn_chose(const GpuAnswer& answer) {
  return answer.has_cudnn &&
         !answer.outcome.sizes_not_known.contains("cudnnBackendGetAttribute (workspace)");
}

}  // namespace

nlohmann::ordered_json to_json(const GpuAnswer& answer) {
  const virtual_gpu::Outcome& outcome = answer.outcome;
  ordered_json frameworks = ordered_json::array(), devices = ordered_json::array();
  for (const Framework& framework : outcome.frameworks) frameworks.push_back(to_json(framework));
  for (const auto& [index, use] : outcome.devices)
    devices.push_back({{"device", index},
                       {"peak_bytes", use.peak},
                       {"processes", use.processes},
                       {"refused_requests", use.refusals},
                       {"last_refused_bytes", use.refused}});
  ordered_json json = {
      {"verdict", to_string(verdict_of(answer))},
      {"card", answer.card->id},
      {"memory_bytes", answer.memory},
      {"context_bytes", answer.context},
      {"context_is_estimated", answer.context_is_estimated},
      {"peak_bytes", outcome.peak()},
      {"managed_bytes", outcome.managed},
      {"exit_status", answer.exit_status},
      {"cudnn_workspaces", cudnn_chose(answer) ? "cuDNN's own heuristics" : "not known"},
      {"devices", devices},
      {"frameworks", frameworks},
      {"sizes_not_known", outcome.sizes_not_known},
      {"sizes_estimated", outcome.sizes_estimated},
      {"not_supported", outcome.not_supported},
      {"directory", answer.directory}};
  if (answer.budget) json["budget_bytes"] = *answer.budget;
  if (answer.batch)
    json["largest_batch"] = {
        {"name", answer.batch->name},
        {"batch", answer.batch->largest},
        {"too_large",
         answer.batch->too_large ? ordered_json(*answer.batch->too_large) : ordered_json(nullptr)},
        {"tried", to_json(answer.batch->tried, "batch")}};
  if (!answer.machines.empty()) json["machines"] = answer.machines;
  if (!answer.settings.empty()) json["settings"] = to_json(answer.settings, "setting");
  if (!answer.served.empty()) json["allocators"] = to_json(answer.served);
  if (answer.measured) json["measured"] = measured_to_json(answer);
  return json;
}

nlohmann::ordered_json to_json(const CaptureAnswer& answer) {
  ordered_json frameworks = ordered_json::array();
  for (const Framework& framework : answer.outcome.frameworks)
    frameworks.push_back(to_json(framework));
  const virtual_gpu::Outcome& outcome = answer.outcome;
  const char* verdict = outcome.out_of_memory()      ? "out of memory"
                        : outcome.frameworks.empty() ? "nothing captured"
                                                     : "captured";
  ordered_json json = {
      {"verdict", verdict},
      {"captured_on", is_of_cpu(answer) ? "the CPU of this machine" : "the GPU of this machine"},
      {"peak_bytes", peak_of(answer)},
      {"exit_status", answer.exit_status},
      {"frameworks", frameworks},
      {"directory", answer.directory}};
  if (!answer.served.empty()) json["allocators"] = to_json(answer.served);
  return json;
}

}  // namespace headroom
