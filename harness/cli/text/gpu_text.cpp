#include "harness/cli/text/gpu_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace headroom {
namespace {

using nlohmann::ordered_json;
using virtual_gpu::Framework;
using virtual_gpu::FrameworkUse;
using virtual_gpu::Share;

constexpr std::size_t kMostLines = 6;

std::string word_of(GpuVerdict verdict) {
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

// For example "5 optimizer steps of PyTorch 2.15.0".
std::string steps_of(const virtual_gpu::Outcome& outcome) {
  if (outcome.frameworks.empty()) return "no framework told of its steps";
  const Framework& first = outcome.frameworks.front();
  if (first.steps == 0) return fmt::format("no counted step of {}", first.name);
  return fmt::format("{} optimizer step{} of {}", first.steps, first.steps == 1 ? "" : "s",
                     first.name);
}

// The first sentences of the framework's message, without its advice.
std::string first_sentences(const std::string& message) {
  const std::size_t advice = message.find(" If reserved but unallocated");
  return message.substr(0, std::min(advice, message.find('\n')));
}

std::string why_not(const virtual_gpu::Outcome& outcome) {
  for (const Framework& framework : outcome.frameworks) {
    if (!framework.ended_out_of_memory) continue;
    std::string text = first_sentences(framework.error);
    if (!framework.out_of_memory.empty() && !framework.out_of_memory.back().line.empty())
      text += fmt::format("\n  at {}", framework.out_of_memory.back().line);
    return text;
  }
  return "";
}

std::string first_line(const GpuAnswer& answer) {
  const virtual_gpu::Outcome& outcome = answer.outcome;
  const std::string of = fmt::format("{} of {}'s {}", format_bytes(outcome.peak()), answer.card->id,
                                     format_bytes(answer.memory));
  switch (verdict_of(answer)) {
    case GpuVerdict::fits:
      return fmt::format("FITS: {} at the peak, {} to spare ({})\n", of,
                         format_bytes(answer.memory - outcome.peak()), steps_of(outcome));
    case GpuVerdict::does_not_fit:
      return fmt::format("DOES NOT FIT on {} ({}) after {}\n  {}\n", answer.card->id,
                         format_bytes(answer.memory), steps_of(outcome), why_not(outcome));
    case GpuVerdict::over_budget:
      return fmt::format("OVER BUDGET: {} at the peak, {} allowed ({})\n", of,
                         format_bytes(*answer.budget), steps_of(outcome));
    case GpuVerdict::not_supported:
      return fmt::format("STOPPED: the program called {}, which the virtual GPU does not have\n",
                         fmt::join(outcome.not_supported, ", "));
    case GpuVerdict::no_gpu_used:
      return "NO GPU USED: the program never took memory of a CUDA device; is its framework a CUDA "
             "build?\n";
    case GpuVerdict::failed:
      return fmt::format("FAILED: the program ended with status {} after {}; {} at the peak\n",
                         answer.exit_status, steps_of(outcome), of);
  }
  return "";
}

void add_shares(std::string& text, const std::string& title, const std::vector<Share>& shares) {
  text += fmt::format("  {}\n", title);
  Bytes rest = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (i < kMostLines)
      text += fmt::format("    {:>11}  {}\n", format_bytes(shares[i].bytes), shares[i].name);
    else
      rest += shares[i].bytes;
  }
  if (rest > 0) text += fmt::format("    {:>11}  others\n", format_bytes(rest));
}

std::string device_text(const FrameworkUse& use) {
  if (use.roles.empty()) {
    std::string text = fmt::format("\nGPU {}, as the framework counts:\n", use.device);
    std::vector<Share> peaks;
    for (const auto& [phase, peak] : use.phase_peaks)
      peaks.push_back({"in tensors at the peak, " + phase, peak});
    if (use.peak_reserved > 0) peaks.push_back({"reserved", use.peak_reserved});
    for (const Share& peak : peaks)
      text += fmt::format("    {:>11}  {}\n", format_bytes(peak.bytes), peak.name);
    return text;
  }
  std::string text =
      fmt::format("\nGPU {}: {} allocated at the peak (in the {} pass), {} reserved\n", use.device,
                  format_bytes(use.peak_allocated), use.phase, format_bytes(use.peak_reserved));
  add_shares(text, "who held it", use.roles);
  add_shares(text, "by line of the program", use.lines);
  return text;
}

std::string not_known_text(const GpuAnswer& answer) {
  std::string text;
  if (answer.context == 0)
    text += "  not counted: the CUDA context and loaded kernels (--context BYTES leaves room)\n";
  for (const auto& [function, calls] : answer.outcome.sizes_not_known)
    text += fmt::format("  not known, counted as 0 bytes: what {} takes (asked {} time{})\n",
                        function, calls, calls == 1 ? "" : "s");
  std::set<std::string> differences;
  for (const Framework& framework : answer.outcome.frameworks)
    differences.insert(framework.differences.begin(), framework.differences.end());
  for (const std::string& difference : differences) text += fmt::format("  {}\n", difference);
  return text;
}

ordered_json to_json(const std::vector<Share>& shares) {
  ordered_json result = ordered_json::array();
  for (const Share& share : shares)
    result.push_back({{"name", share.name}, {"bytes", share.bytes}});
  return result;
}

ordered_json to_json(const FrameworkUse& use) {
  return {{"device", use.device},
          {"peak_allocated_bytes", use.peak_allocated},
          {"peak_reserved_bytes", use.peak_reserved},
          {"peak_phase", use.phase},
          {"roles", to_json(use.roles)},
          {"lines", to_json(use.lines)},
          {"phase_peak_bytes", use.phase_peaks}};
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

// The stand-in says so where it had no cuDNN, or one too old, to ask for a workspace.
bool cudnn_chose(const GpuAnswer& answer) {
  return answer.has_cudnn &&
         !answer.outcome.sizes_not_known.contains("cudnnBackendGetAttribute (workspace)");
}

}  // namespace

GpuVerdict verdict_of(const GpuAnswer& answer) {
  const virtual_gpu::Outcome& outcome = answer.outcome;
  if (!outcome.not_supported.empty()) return GpuVerdict::not_supported;
  if (answer.exit_status != 0)
    return outcome.out_of_memory() ? GpuVerdict::does_not_fit : GpuVerdict::failed;
  if (outcome.devices.empty()) return GpuVerdict::no_gpu_used;
  if (answer.budget && outcome.peak() > *answer.budget) return GpuVerdict::over_budget;
  return GpuVerdict::fits;
}

std::string to_words(const GpuAnswer& answer) {
  std::string text = first_line(answer);
  const Framework* shown = nullptr;
  for (const Framework& framework : answer.outcome.frameworks) {
    for (const FrameworkUse& use : framework.devices) text += device_text(use);
    if (shown == nullptr && !framework.snapshot.empty()) shown = &framework;
  }
  text += "\n";
  text += not_known_text(answer);
  if (shown != nullptr)
    text += fmt::format("  which allocator setting would serve it: headroom replay {}/{}\n",
                        answer.directory, shown->snapshot);
  return text;
}

nlohmann::ordered_json to_json(const GpuAnswer& answer) {
  const virtual_gpu::Outcome& outcome = answer.outcome;
  ordered_json frameworks = ordered_json::array(), devices = ordered_json::array();
  for (const Framework& framework : outcome.frameworks) frameworks.push_back(to_json(framework));
  for (const auto& [index, use] : outcome.devices)
    devices.push_back({{"device", index},
                       {"peak_bytes", use.peak},
                       {"refused_requests", use.refusals},
                       {"last_refused_bytes", use.refused}});
  ordered_json json = {
      {"verdict", word_of(verdict_of(answer))},
      {"card", answer.card->id},
      {"memory_bytes", answer.memory},
      {"context_bytes", answer.context},
      {"peak_bytes", outcome.peak()},
      {"exit_status", answer.exit_status},
      {"cudnn_workspaces", cudnn_chose(answer) ? "cuDNN's own heuristics" : "not known"},
      {"devices", devices},
      {"frameworks", frameworks},
      {"sizes_not_known", outcome.sizes_not_known},
      {"not_supported", outcome.not_supported},
      {"directory", answer.directory}};
  if (answer.budget) json["budget_bytes"] = *answer.budget;
  return json;
}

}  // namespace headroom
