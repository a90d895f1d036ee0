#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "harness/base/text.h"
#include "harness/cli/text/gpu/frameworks_text.h"
#include "harness/cli/text/gpu/gpu_answer.h"

namespace headroom {
namespace {

using virtual_gpu::Framework;
using virtual_gpu::OutOfMemoryEvent;

// The estimated context of each process that held memory at the peak.
Bytes estimated_contexts(const GpuAnswer& answer) {
  return estimated_context(*answer.card) * std::max<Bytes>(1, answer.outcome.processes());
}

std::string contexts(const GpuAnswer& answer) {
  return answer.outcome.processes() > 1
             ? fmt::format("the CUDA contexts of {} processes", answer.outcome.processes())
             : "the CUDA context";
}

// Returns a warning if the memory to spare is smaller than a CUDA context, else "".
std::string context_warning(const GpuAnswer& answer) {
  const Bytes estimated = estimated_contexts(answer);
  if (answer.context > 0 || answer.memory - answer.outcome.peak() >= estimated) return "";
  return fmt::format(
      "  On a real card it may not fit: about {} of it go to {} (estimated; --context BYTES leaves "
      "room)\n",
      format_bytes(estimated), contexts(answer));
}

// Returns what a program survived, such as a batch that Accelerate's find_executable_batch_size
// then halved, or "".
std::string survived_text(const virtual_gpu::Outcome& outcome) {
  std::size_t times = 0;
  const OutOfMemoryEvent* last = nullptr;
  for (const Framework& framework : outcome.frameworks)
    for (const OutOfMemoryEvent& event : framework.out_of_memory) {
      ++times;
      last = &event;
    }
  if (last == nullptr) return "";
  return fmt::format(
      "  It ran out of memory {} time{} and went on. The peak includes these attempts. The "
      "last request was for {}{}\n",
      times, times == 1 ? "" : "s", format_bytes(last->requested),
      last->line.empty() ? "" : " at " + printable(last->line));
}

// Returns what was in use of the memory that TensorFlow or JAX took in advance, such as most of a
// card at the start; "" if it was more than half, or if others held memory as well.
std::string in_advance_text(const virtual_gpu::Outcome& outcome) {
  if (outcome.frameworks.size() != 1) return "";
  const Framework& framework = outcome.frameworks.front();
  Bytes in_use = 0;
  for (const auto& use : framework.devices) in_use = std::max(in_use, use.peak_allocated);
  if (framework.name.starts_with("PyTorch") || in_use == 0 || outcome.peak() < 2 * in_use)
    return "";
  return fmt::format("  {} takes memory in advance; {} of it was in use at the peak\n",
                     printable(framework.name), format_bytes(in_use));
}

std::string first_line(const GpuAnswer& answer) {
  const virtual_gpu::Outcome& outcome = answer.outcome;
  std::string peak = fmt::format("{} of {}'s {} at the peak", format_bytes(outcome.peak()),
                                 answer.card->id, format_bytes(answer.memory));
  if (outcome.processes() > 1) peak += fmt::format(" of {} processes", outcome.processes());
  switch (verdict_of(answer)) {
    case GpuVerdict::fits:
      return fmt::format("FITS: {}, {} to spare ({})\n{}{}{}{}", peak,
                         format_bytes(answer.memory - outcome.peak()), steps_of(outcome),
                         in_advance_text(outcome), after_stop_text(outcome, answer.exit_status),
                         survived_text(outcome), context_warning(answer));
    case GpuVerdict::does_not_fit:
      return fmt::format("DOES NOT FIT on {} ({}): out of memory {}\n  {}\n", answer.card->id,
                         format_bytes(answer.memory), when_it_ended(outcome),
                         why_out_of_memory(outcome));
    case GpuVerdict::over_budget:
      return fmt::format("OVER BUDGET: {}, {} allowed ({})\n{}", peak, format_bytes(*answer.budget),
                         steps_of(outcome), in_advance_text(outcome));
    case GpuVerdict::not_supported:
      return fmt::format("STOPPED: the program called {}, which the virtual GPU does not have\n",
                         fmt::join(outcome.not_supported, ", "));
    case GpuVerdict::no_gpu_used:
      return "NO GPU USED: the program never took memory of a CUDA device. Does it choose the GPU, "
             "and is its framework a CUDA build of PyTorch, TensorFlow or JAX?\n"
             "  headroom capture -- … follows a program that trains with PyTorch on the CPU\n";
    case GpuVerdict::failed:
      return fmt::format("FAILED: the program ended with status {} {}; {}\n{}", answer.exit_status,
                         when_it_ended(outcome), peak, why_it_failed(outcome));
  }
  return "";
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
                        to_string(setting.verdict), setting.what);
  return text;
}

std::string what_to_try(const GpuAnswer& answer) {
  std::string text;
  if (answer.settings.empty())
    text += "  --settings runs it again with other settings of PyTorch's allocator\n";
  if (!answer.batch)
    text += "  --largest-batch NAME finds the largest batch; NAME is the option that sets it\n";
  text += "  --which finds the smallest card on which it fits\n";
  return text;
}

// Says what a function is asked for the size of; "" for one of another library.
std::string_view thing_of(std::string_view function) {
  constexpr std::pair<std::string_view, std::string_view> kThings[] = {
      {"cudnnBackend", "workspaces of convolutions by cuDNN"},
      {"cudnn", "memory of cuDNN"},
      {"cufft", "work areas of cuFFT"},
      {"cusolver", "workspaces of cuSOLVER"},
      {"cusparse", "buffers of cuSPARSE"},
      {"nccl", "buffers of NCCL"}};
  for (const auto& [beginning, thing] : kThings)
    if (function.starts_with(beginning)) return thing;
  return "";
}

// Says what functions were asked for the size of, and how often, in one line; "" if there are none.
std::string calls_text(const std::string& what,
                       const std::map<std::string, std::uint64_t>& functions) {
  std::map<std::string_view, std::vector<std::string>> calls_by_thing;
  for (const auto& [function, calls] : functions)
    calls_by_thing[thing_of(function)].push_back(
        fmt::format("{}, called {} time{}", printable(function), calls, calls == 1 ? "" : "s"));
  std::vector<std::string> parts;
  for (const auto& [thing, calls] : calls_by_thing)
    parts.push_back(thing.empty() ? fmt::format("{}", fmt::join(calls, "; "))
                                  : fmt::format("{} ({})", thing, fmt::join(calls, "; ")));
  return parts.empty() ? "" : fmt::format("  {}: {}\n", what, fmt::join(parts, ", "));
}

std::string not_known_text(const GpuAnswer& answer) {
  std::string text;
  if (answer.context_is_estimated)
    text += fmt::format("  left out of {}'s memory: {}, about {} (estimated)\n", answer.card->id,
                        contexts(answer), format_bytes(estimated_contexts(answer)));
  else if (answer.context == 0 && answer.outcome.peak() > 0)
    text += fmt::format(
        "  not counted: {}, about {} (estimated), and loaded kernels; --context BYTES leaves "
        "room\n",
        contexts(answer), format_bytes(estimated_contexts(answer)));
  if (answer.outcome.managed > 0)
    text += fmt::format(
        "  not counted: {} of managed memory, which the driver moves between the card and the "
        "machine as there is room\n",
        format_bytes(answer.outcome.managed));
  if (const std::size_t untold = answer.outcome.untold_processes; untold > 0)
    text += fmt::format(
        "  {} did not report what memory was for. A process does not if it was killed, uses no "
        "framework that Headroom knows, or runs Python with -I or -E\n",
        untold == 1 ? "1 process" : fmt::format("{} processes", untold));
  text += calls_text("sizes not known, counted as 0 bytes", answer.outcome.sizes_not_known);
  text += calls_text("sizes estimated", answer.outcome.sizes_estimated);
  std::set<std::string> differences;
  for (const Framework& framework : answer.outcome.frameworks)
    differences.insert(framework.differences.begin(), framework.differences.end());
  for (const std::string& difference : differences)
    text += fmt::format("  {}\n", printable(difference));
  return text;
}

}  // namespace

std::string trial_line(const std::string& what, const GpuAnswer& answer, bool served) {
  const bool no_step = verdict_of(answer) == GpuVerdict::fits && !served;
  return fmt::format("  {:<17} {:>11}  {}", what, format_bytes(answer.outcome.peak()),
                     no_step ? "took no step" : to_string(verdict_of(answer)));
}

std::string to_words(const GpuAnswer& answer) {
  std::string text = answer.batch ? batch_text(answer) : "";
  text += first_line(answer);
  const std::vector<Framework>& frameworks = answer.outcome.frameworks;
  text += devices_text(frameworks);
  if (!answer.settings.empty()) text += settings_text(answer.settings);
  if (!answer.served.empty()) text += to_words(answer.served);
  if (answer.measured) text += comparison_with_measured(answer);
  text += "\n";
  if (verdict_of(answer) == GpuVerdict::does_not_fit) text += what_to_try(answer);
  if (!answer.machines.empty())
    text += fmt::format("  rented with it: {}\n", fmt::join(answer.machines, ", "));
  text += not_known_text(answer);
  const auto shown =
      std::find_if(frameworks.begin(), frameworks.end(),
                   [](const Framework& framework) { return !framework.snapshot.empty(); });
  if (shown != frameworks.end())
    text += fmt::format("  how other allocators would serve it: headroom replay {}/{}\n",
                        answer.directory, printable(shown->snapshot));
  return text;
}

}  // namespace headroom
