#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "harness/base/text.h"
#include "harness/cli/text/gpu/gpu_answer.h"
#include "harness/stats/median.h"

namespace headroom {
namespace {

constexpr std::size_t kFewestRounds = 3;  // fewer tell nothing about times

std::string bytes_or_dash(Bytes bytes) { return bytes == 0 ? "-" : format_bytes(bytes); }

// The time of a step relative to `own`'s in the same round, of every round in which both took one.
std::vector<double> ratios(const ServedRun& run, const ServedRun& own) {
  std::vector<double> result;
  for (std::size_t i = 0; i < std::min(run.step_us.size(), own.step_us.size()); ++i)
    if (own.step_us[i] > 0) result.push_back(run.step_us[i] / own.step_us[i]);
  return result;
}

bool has_times(const std::vector<ServedRun>& runs) {
  return std::all_of(runs.begin(), runs.end(),
                     [](const ServedRun& run) {
                       return run.step_us.size() >= kFewestRounds ||
                              run.verdict != GpuVerdict::fits;
                     }) &&
         runs.front().step_us.size() >= kFewestRounds;
}

std::string time_text(const ServedRun& run, const ServedRun& own) {
  if (run.step_us.empty()) return fmt::format("  {:>11}  {:>18}", "-", "-");
  const std::vector<double> each = ratios(run, own);
  const auto [least, most] = std::minmax_element(each.begin(), each.end());
  return fmt::format("  {:>8.1f} ms  {:>4.2f} ({:.2f} to {:.2f})", median_of(run.step_us) / 1000,
                     median_of(each), *least, *most);
}

}  // namespace

ServedRun served_run(const std::string& allocator, GpuVerdict verdict,
                     const virtual_gpu::Outcome& outcome) {
  ServedRun run{.allocator = allocator, .verdict = verdict, .not_engaged = "", .output = ""};
  for (const virtual_gpu::Framework& framework : outcome.frameworks) {
    run.peak_resident = std::max(run.peak_resident, framework.peak_resident);
    if (!framework.step_us.empty()) run.step_us = {median_of(framework.step_us)};
    for (const virtual_gpu::FrameworkUse& use : framework.devices) {
      if (use.peak_reserved < run.peak_reserved) continue;
      run.peak_requested = use.peak_requested;
      run.peak_allocated = use.peak_allocated;
      run.peak_reserved = use.peak_reserved;
      run.not_engaged = use.not_engaged;
    }
  }
  return run;
}

std::string to_words(const std::vector<ServedRun>& runs) {
  const bool resident = runs.front().peak_resident > 0, times = has_times(runs);
  std::string text = fmt::format(
      "\nWith Headroom's allocators in place of PyTorch's own, by running it again\n"
      "    {:>11}  {:>11}  {:>11}",
      "requested", "allocated", "reserved");
  if (resident) text += fmt::format("  {:>11}", "resident");
  if (times) text += fmt::format("  {:>11}  {:>18}", "step", "ratio (range)");
  text += "\n";
  for (const ServedRun& run : runs) {
    text += fmt::format("    {:>11}  {:>11}  {:>11}", bytes_or_dash(run.peak_requested),
                        bytes_or_dash(run.peak_allocated), bytes_or_dash(run.peak_reserved));
    if (resident) text += fmt::format("  {:>11}", bytes_or_dash(run.peak_resident));
    if (times) text += time_text(run, runs.front());
    text += fmt::format("  {:<12}  {}\n", to_string(run.verdict),
                        run.allocator.empty() ? "PyTorch's own" : printable(run.allocator));
    if (!run.not_engaged.empty())
      text += fmt::format("      does not count: {}\n", printable(run.not_engaged));
    if (run.verdict == GpuVerdict::failed)
      text += fmt::format("      its output: {}\n", run.output);
  }
  return text;
}

nlohmann::ordered_json to_json(const std::vector<ServedRun>& runs) {
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  for (const ServedRun& run : runs)
    result.push_back({{"allocator", run.allocator.empty() ? "PyTorch's own" : run.allocator},
                      {"verdict", to_string(run.verdict)},
                      {"peak_requested_bytes", run.peak_requested},
                      {"peak_allocated_bytes", run.peak_allocated},
                      {"peak_reserved_bytes", run.peak_reserved},
                      {"peak_resident_bytes", run.peak_resident},
                      {"step_us_of_rounds", run.step_us},
                      {"not_engaged", run.not_engaged}});
  return result;
}

}  // namespace headroom
