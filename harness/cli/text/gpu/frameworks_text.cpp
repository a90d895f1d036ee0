#include "harness/cli/text/gpu/frameworks_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "harness/base/text.h"
#include "harness/virtual_gpu/module_groups.h"

namespace headroom {
namespace {

using virtual_gpu::Framework;
using virtual_gpu::FrameworkUse;
using virtual_gpu::Share;

constexpr std::size_t kMostRoles = 12;
constexpr std::size_t kMostModules = 8;
constexpr std::size_t kMostLines = 6;
constexpr std::size_t kMostOfAnError = 300;  // bytes

// The first sentences of the framework's message, without its advice. A line that ends in a colon
// says little without the next one.
std::string first_sentences(const std::string& message) {
  const std::size_t line = std::min(message.find('\n'), message.size());
  std::string told =
      message.substr(0, std::min(line, message.find(" If reserved but unallocated")));
  const std::size_t next = message.find_first_not_of("\n ", line);
  if (told.ends_with(':') && next != std::string::npos)
    told += ' ' + message.substr(next, message.find('\n', next) - next);
  return told;
}

void add_shares(std::string& text, const std::string& title, const std::vector<Share>& shares,
                std::size_t most) {
  text += fmt::format("  {}\n", title);
  Bytes rest = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (i < most)
      text +=
          fmt::format("    {:>11}  {}\n", format_bytes(shares[i].bytes), printable(shares[i].name));
    else
      rest += shares[i].bytes;
  }
  if (rest > 0) text += fmt::format("    {:>11}  others\n", format_bytes(rest));
}

std::string when(const std::string& phase) {
  if (phase == "forward" || phase == "backward") return fmt::format("in the {} pass", phase);
  if (phase == "optimizer") return "in the optimizer step";
  if (phase == "elsewhere") return "outside of the model";
  return "in " + printable(phase);  // the name of a compiled program
}

// A process that only starts or evaluates others takes no step, so the one with most is told about.
const Framework& with_most_steps(const virtual_gpu::Outcome& outcome) {
  return *std::max_element(
      outcome.frameworks.begin(), outcome.frameworks.end(),
      [](const Framework& a, const Framework& b) { return a.steps < b.steps; });
}

// Returns the lines about one GPU without its name, with which they begin.
std::string figures_of(const FrameworkUse& use) {
  if (use.roles.empty()) {
    std::string text = ", as the framework counts:\n";
    std::vector<Share> peaks;
    for (const auto& [phase, peak] : use.phase_peaks)
      peaks.push_back({"in tensors at the peak, " + phase, peak});
    if (use.peak_reserved > 0) peaks.push_back({"reserved", use.peak_reserved});
    for (const Share& peak : peaks)
      text += fmt::format("    {:>11}  {}\n", format_bytes(peak.bytes), printable(peak.name));
    return text;
  }
  std::string text = fmt::format(": {} allocated at the peak ({})",
                                 format_bytes(use.peak_allocated), when(use.phase));
  if (use.peak_reserved > 0) text += fmt::format(", {} reserved", format_bytes(use.peak_reserved));
  text += "\n";
  add_shares(text, "what held it", use.roles, kMostRoles);
  if (!use.modules.empty())
    add_shares(text, "by module", virtual_gpu::module_groups(use.modules, kMostModules),
               kMostModules);
  if (!use.lines.empty()) add_shares(text, "by line of the program", use.lines, kMostLines);
  return text;
}

// "GPU 0", "GPU 0, each of 2 processes" where it stands there twice, or "GPUs 0, 1, each".
std::string names_of(const std::vector<int>& devices) {
  const std::set<int> different(devices.begin(), devices.end());
  if (different.size() > 1) return fmt::format("GPUs {}, each", fmt::join(different, ", "));
  const std::string name = fmt::format("GPU {}", devices.front());
  if (devices.size() == 1) return name;
  return name + fmt::format(", each of {} processes", devices.size());
}

}  // namespace

std::string steps_of(const virtual_gpu::Outcome& outcome) {
  if (outcome.frameworks.empty()) return "no framework reported its steps";
  const Framework& most = with_most_steps(outcome);
  const std::string name = printable(most.name);
  if (most.steps == 0) return fmt::format("no optimizer step of {} was counted", name);
  return fmt::format("{} optimizer step{} of {}", most.steps, most.steps == 1 ? "" : "s", name);
}

std::string when_it_ended(const virtual_gpu::Outcome& outcome) {
  if (outcome.frameworks.empty()) return "before any optimizer step of a framework";
  const Framework& most = with_most_steps(outcome);
  if (most.steps == 0) return "before any optimizer step of " + printable(most.name);
  return "after " + steps_of(outcome);
}

std::string after_stop_text(const virtual_gpu::Outcome& outcome, int exit_status) {
  if (exit_status == 0 || !outcome.was_stopped()) return "";
  std::string text = fmt::format(
      "  The command ended with status {} after --until-step had stopped the program", exit_status);
  for (const Framework& framework : outcome.frameworks)
    if (!framework.error.empty()) return text + ": " + printable(framework.error) + "\n";
  return text + "\n";
}

std::string why_it_failed(const virtual_gpu::Outcome& outcome) {
  for (const Framework& framework : outcome.frameworks) {
    if (framework.error.empty() || framework.error_was_lost) continue;
    const bool needs_more_gpus =
        framework.error.find("invalid device ordinal") != std::string::npos;
    return fmt::format(
        "  {}\n{}", shortened(printable(first_sentences(framework.error)), kMostOfAnError),
        needs_more_gpus ? "  The program asked for a GPU that is not there: --gpus N "
                          "shows it N of them\n"
                        : "");
  }
  return "";
}

std::string why_out_of_memory(const virtual_gpu::Outcome& outcome) {
  for (const Framework& framework : outcome.frameworks) {
    if (!framework.ended_out_of_memory) continue;
    std::string text = first_sentences(framework.error);
    if (!framework.out_of_memory.empty() && !framework.out_of_memory.back().line.empty())
      text += fmt::format("\n  at {}", printable(framework.out_of_memory.back().line));
    return text;
  }
  return "";
}

std::string device_text(const FrameworkUse& use) {
  return "\n" + (use.kind == "cpu" ? "CPU" : fmt::format("GPU {}", use.device)) + figures_of(use);
}

std::string devices_text(const std::vector<Framework>& frameworks) {
  std::vector<std::pair<std::string, std::vector<int>>>
      alike;  // figures, and the GPUs that have them
  for (const Framework& framework : frameworks) {
    for (const FrameworkUse& use : framework.devices) {
      const std::string figures = figures_of(use);
      auto group = std::find_if(alike.begin(), alike.end(),
                                [&](const auto& known) { return known.first == figures; });
      if (group == alike.end()) group = alike.insert(group, {figures, {}});
      group->second.push_back(use.device);
    }
  }
  std::stable_sort(alike.begin(), alike.end(), [](const auto& a, const auto& b) {
    return *std::min_element(a.second.begin(), a.second.end()) <
           *std::min_element(b.second.begin(), b.second.end());
  });
  std::string text;
  for (const auto& [figures, devices] : alike) text += "\n" + names_of(devices) + figures;
  return text;
}

}  // namespace headroom
