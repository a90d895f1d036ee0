#include "harness/cli/text/gpu_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "harness/base/text.h"

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
  const std::string name = printable(first.name);
  if (first.steps == 0) return fmt::format("no counted step of {}", name);
  return fmt::format("{} optimizer step{} of {}", first.steps, first.steps == 1 ? "" : "s", name);
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
      text += fmt::format("\n  at {}", printable(framework.out_of_memory.back().line));
    return text;
  }
  return "";
}

// Returns a warning if the memory to spare is smaller than a CUDA context, else "".
std::string context_warning(const GpuAnswer& answer) {
  const Bytes context = estimated_context(*answer.card);
  if (answer.context > 0 || answer.memory - answer.outcome.peak() >= context) return "";
  return fmt::format(
      "  On a real card it may not fit: the CUDA context takes about {} of it (estimated; "
      "--context "
      "leaves it room)\n",
      format_bytes(context));
}

std::string first_line(const GpuAnswer& answer) {
  const virtual_gpu::Outcome& outcome = answer.outcome;
  const std::string of = fmt::format("{} of {}'s {}", format_bytes(outcome.peak()), answer.card->id,
                                     format_bytes(answer.memory));
  switch (verdict_of(answer)) {
    case GpuVerdict::fits:
      return fmt::format("FITS: {} at the peak, {} to spare ({})\n{}", of,
                         format_bytes(answer.memory - outcome.peak()), steps_of(outcome),
                         context_warning(answer));
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
      text +=
          fmt::format("    {:>11}  {}\n", format_bytes(shares[i].bytes), printable(shares[i].name));
    else
      rest += shares[i].bytes;
  }
  if (rest > 0) text += fmt::format("    {:>11}  others\n", format_bytes(rest));
}

// "layers.3.linear" becomes "layers.*.linear".
std::string without_numbers(const std::string& path) {
  std::string result;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '.');) {
    const bool number = part.find_first_not_of("0123456789") == std::string::npos;
    result += (result.empty() ? "" : ".") + (number ? "*" : part);
  }
  return result;
}

// Modules whose paths differ in numbers only are shown as one.
std::vector<Share> alike_together(const std::vector<virtual_gpu::ModuleShare>& modules) {
  std::map<std::string, std::pair<Bytes, std::vector<std::string>>> groups;
  for (const virtual_gpu::ModuleShare& module : modules) {
    auto& [bytes, members] = groups[without_numbers(module.name)];
    bytes += module.bytes;
    members.push_back(module.name);
  }
  std::vector<Share> result;
  for (const auto& [pattern, group] : groups) {
    const auto& [bytes, members] = group;
    result.push_back({members.size() == 1 ? members.front()
                                          : fmt::format("{}  ({} alike)", pattern, members.size()),
                      bytes});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const Share& a, const Share& b) { return a.bytes > b.bytes; });
  return result;
}

std::string when(const std::string& phase) {
  if (phase == "forward" || phase == "backward") return fmt::format("in the {} pass", phase);
  if (phase == "optimizer") return "in the optimizer step";
  if (phase == "elsewhere") return "outside of the model";
  return "in " + printable(phase);  // the name of a compiled program
}

std::string device_text(const FrameworkUse& use) {
  if (use.roles.empty()) {
    std::string text = fmt::format("\nGPU {}, as the framework counts:\n", use.device);
    std::vector<Share> peaks;
    for (const auto& [phase, peak] : use.phase_peaks)
      peaks.push_back({"in tensors at the peak, " + phase, peak});
    if (use.peak_reserved > 0) peaks.push_back({"reserved", use.peak_reserved});
    for (const Share& peak : peaks)
      text += fmt::format("    {:>11}  {}\n", format_bytes(peak.bytes), printable(peak.name));
    return text;
  }
  std::string text = fmt::format("\nGPU {}: {} allocated at the peak ({})", use.device,
                                 format_bytes(use.peak_allocated), when(use.phase));
  if (use.peak_reserved > 0) text += fmt::format(", {} reserved", format_bytes(use.peak_reserved));
  text += "\n";
  add_shares(text, "who held it", use.roles);
  if (!use.modules.empty()) add_shares(text, "by module", alike_together(use.modules));
  if (!use.lines.empty()) add_shares(text, "by line of the program", use.lines);
  return text;
}

std::string batch_text(const GpuAnswer& answer) {
  const GpuBatchSearch& search = *answer.batch;
  if (search.largest == 0)
    return fmt::format("NO BATCH FITS on {}: {} runs with {}\n", answer.card->id,
                       search.tried.size(), search.name);
  std::string text = fmt::format(
      "LARGEST BATCH: {} by {}; {}\n", search.largest, search.name,
      search.too_large ? fmt::format("{} does not fit", *search.too_large) : "no larger was tried");
  // Batches beyond the size of the data set all hold the same.
  const auto same =
      std::find_if(search.tried.begin(), search.tried.end(),
                   [&](const GpuVariant& trial) { return trial.peak == answer.outcome.peak(); });
  if (same->what != std::to_string(search.largest))
    text += fmt::format("  From {} on the peak stays the same: is that all the data there is?\n",
                        same->what);
  return text;
}

std::string settings_text(const std::vector<GpuVariant>& settings) {
  std::string text = "\nWith other settings of PyTorch's allocator, by running it again\n";
  for (const GpuVariant& setting : settings)
    text += fmt::format("    {:>11}  {:<12}  {}\n", format_bytes(setting.peak),
                        word_of(setting.verdict), setting.what);
  return text;
}

std::string what_to_try(const GpuAnswer& answer) {
  std::string text;
  if (answer.settings.empty())
    text += "  --settings runs it again with other settings of PyTorch's allocator\n";
  if (!answer.batch)
    text += "  --largest-batch NAME finds the largest batch; NAME is the option that sets it\n";
  text += "  --which finds the smallest card that serves\n";
  return text;
}

std::string not_known_text(const GpuAnswer& answer) {
  std::string text;
  if (answer.context == 0)
    text += fmt::format(
        "  not counted: the CUDA context, about {} (estimated), and loaded kernels; --context "
        "BYTES "
        "leaves room\n",
        format_bytes(estimated_context(*answer.card)));
  for (const auto& [function, calls] : answer.outcome.sizes_not_known)
    text += fmt::format("  not known, counted as 0 bytes: what {} takes (asked {} time{})\n",
                        function, calls, calls == 1 ? "" : "s");
  for (const auto& [function, calls] : answer.outcome.sizes_estimated)
    text += fmt::format("  estimated: what {} takes (asked {} time{})\n", function, calls,
                        calls == 1 ? "" : "s");
  std::set<std::string> differences;
  for (const Framework& framework : answer.outcome.frameworks)
    differences.insert(framework.differences.begin(), framework.differences.end());
  for (const std::string& difference : differences)
    text += fmt::format("  {}\n", printable(difference));
  return text;
}

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
                      {"verdict", word_of(variant.verdict)},
                      {"peak_bytes", variant.peak}});
  return result;
}

ordered_json to_json(const std::vector<virtual_gpu::ModuleShare>& modules) {
  ordered_json result = ordered_json::array();
  for (const virtual_gpu::ModuleShare& module : modules)
    result.push_back({{"name", module.name}, {"bytes", module.bytes}, {"roles", module.roles}});
  return result;
}

ordered_json to_json(const FrameworkUse& use) {
  ordered_json json = {{"device", use.device},
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

// The stand-in says so where it had no cuDNN, or one too old, to ask for a workspace.
bool cudnn_chose(const GpuAnswer& answer) {
  return answer.has_cudnn &&
         !answer.outcome.sizes_not_known.contains("cudnnBackendGetAttribute (workspace)");
}

}  // namespace

GpuVerdict verdict_of(const GpuAnswer& answer) {
  const virtual_gpu::Outcome& outcome = answer.outcome;
  if (!outcome.not_supported.empty()) return GpuVerdict::not_supported;
  // JAX tells the program nothing of an error in work that it did not wait for, and the program
  // ends with 0.
  if (outcome.out_of_memory()) return GpuVerdict::does_not_fit;
  if (answer.exit_status != 0) return GpuVerdict::failed;
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

std::string batch_line(std::int64_t batch, const GpuAnswer& answer, bool served) {
  const bool no_step = verdict_of(answer) == GpuVerdict::fits && !served;
  return fmt::format("  batch {:<7} {:>11}  {}", batch, format_bytes(answer.outcome.peak()),
                     no_step ? "took no step" : word_of(verdict_of(answer)));
}

std::string to_words(const GpuAnswer& answer) {
  std::string text = answer.batch ? batch_text(answer) : "";
  text += first_line(answer);
  const Framework* shown = nullptr;
  for (const Framework& framework : answer.outcome.frameworks) {
    for (const FrameworkUse& use : framework.devices) text += device_text(use);
    if (shown == nullptr && !framework.snapshot.empty()) shown = &framework;
  }
  if (!answer.settings.empty()) text += settings_text(answer.settings);
  text += "\n";
  if (verdict_of(answer) == GpuVerdict::does_not_fit) text += what_to_try(answer);
  text += not_known_text(answer);
  if (shown != nullptr)
    text += fmt::format("  how other allocators would serve it: headroom replay {}/{}\n",
                        answer.directory, printable(shown->snapshot));
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
  if (!answer.settings.empty()) json["settings"] = to_json(answer.settings, "setting");
  return json;
}

Bytes peak_of(const CaptureAnswer& answer) {
  Bytes most = 0;
  for (const Framework& framework : answer.outcome.frameworks)
    for (const FrameworkUse& use : framework.devices)
      most = std::max({most, use.peak_reserved, use.peak_allocated});
  return most;
}

std::string to_words(const CaptureAnswer& answer) {
  const virtual_gpu::Outcome& outcome = answer.outcome;
  if (outcome.frameworks.empty())
    return "NO GPU USED: no framework told of memory of a CUDA device\n";
  std::string text =
      outcome.out_of_memory()
          ? fmt::format("OUT OF MEMORY after {}\n  {}\n", steps_of(outcome), why_not(outcome))
          : fmt::format("PEAK: {} ({})\n", format_bytes(peak_of(answer)), steps_of(outcome));
  for (const Framework& framework : outcome.frameworks) {
    for (const FrameworkUse& use : framework.devices) {
      text += device_text(use);
      if (use.card_memory > 0)
        text += fmt::format(
            "  {} of {}; {} beside the allocator at the end: context, kernels, libraries, and "
            "other "
            "programs\n",
            printable(use.card), format_bytes(use.card_memory), format_bytes(use.beside_allocator));
    }
    if (!framework.snapshot.empty())
      text += fmt::format("  how other allocators would serve it: headroom replay {}/{}\n",
                          answer.directory, printable(framework.snapshot));
  }
  return text + fmt::format("  the virtual GPU beside it: headroom gpu CARD --against {} -- …\n",
                            answer.directory);
}

nlohmann::ordered_json to_json(const CaptureAnswer& answer) {
  ordered_json frameworks = ordered_json::array();
  for (const Framework& framework : answer.outcome.frameworks)
    frameworks.push_back(to_json(framework));
  return {{"captured_on", "the GPU of this machine"},
          {"peak_bytes", peak_of(answer)},
          {"exit_status", answer.exit_status},
          {"frameworks", frameworks},
          {"directory", answer.directory}};
}

}  // namespace headroom
