#include "harness/watch/watch_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "harness/base/subprocess.h"
#include "harness/base/text.h"

namespace headroom {
namespace {

constexpr std::size_t kMostNamed = 5;  // growths, in words

constexpr std::size_t kMostPoints = std::size_t{1} << 15;

void raise(std::optional<WatchPeak>& peak, Bytes bytes, const WatchSample& sample) {
  if (!peak || bytes > peak->bytes) peak = {bytes, sample.time_s, sample.processes.size()};
}

std::string name_of(const ProcessUsage& process) {
  return fmt::format("{} ({})", process.pid, printable(process.command));
}

std::string minutes_or_seconds(double minutes) {
  return minutes < 2 ? fmt::format("{:.0f} s", std::max(1.0, std::ceil(60 * minutes)))
                     : fmt::format("{:.0f} min", std::ceil(minutes));
}

std::string per_minute(double bytes) {
  return format_bytes(static_cast<Bytes>(std::llround(bytes))) + " per min";
}

// The least growth that would have been visible, and the time in which less becomes visible.
std::string limits_in_words(const LeakFinding& finding, const LeakOptions& options) {
  const std::string watched = minutes_or_seconds(finding.length);
  if (!std::isfinite(finding.detectable_slope))
    return fmt::format("{} are too short to tell any growth", watched);
  std::string text = fmt::format("in {} only growth of {} or more would have shown", watched,
                                 per_minute(finding.detectable_slope));
  const double small = std::max<double>(kMiB, options.harmless_slope);
  const auto length = length_to_see(finding, small);
  if (length && *length > finding.length)
    text +=
        fmt::format("; {} shows after about {}", per_minute(small), minutes_or_seconds(*length));
  return text;
}

// Growth that no finite time of watching can exclude.
constexpr const char* kNotExcluded =
    "slower growth, or growth in steps that are further apart, would not show";

// The answer in capitals, then what it rests on.
std::string growth_in_words(const WatchedGrowth& growth, const LeakOptions& options) {
  const LeakFinding& finding = growth.finding;
  const std::string slope = describe(finding, options, "min");
  const std::string limit = per_minute(options.harmless_slope);
  const std::string watched = minutes_or_seconds(finding.length);
  switch (finding.verdict) {
    case LeakVerdict::leak:
      return fmt::format("LEAKS: {} grows by {}; {} counts as harmless", growth.metric, slope,
                         limit);
    case LeakVerdict::no_leak:
      return fmt::format("NO LEAK of more than {} seen in {}: {} changes by {}; {}", limit, watched,
                         growth.metric, slope, kNotExcluded);
    case LeakVerdict::levels_off:
      return fmt::format(
          "NO LEAK of more than {} seen in {}, after a warm-up: {} grew, then changed by {}; {}",
          limit, watched, growth.metric, slope, kNotExcluded);
    case LeakVerdict::undecided:
      break;
  }
  if (finding.interval.low > options.harmless_slope)
    return fmt::format(
        "UNDECIDED: {} grows by {}, more slowly in the second half; watch for about {} more to see "
        "whether it stops",
        growth.metric, slope, minutes_or_seconds(finding.more_needed.value_or(finding.length)));
  return fmt::format("UNDECIDED: {} changes by {}; {}", growth.metric, slope,
                     limits_in_words(finding, options));
}

// The growth that answers the question: what leaks, else what is undecided, else the tree.
const WatchedGrowth& leading(const WatchSummary& summary) {
  for (const LeakVerdict verdict : {LeakVerdict::leak, LeakVerdict::undecided})
    for (const WatchedGrowth& one : summary.growth)
      if (one.of != WatchedGrowth::Of::devices && one.finding.verdict == verdict) return one;
  return summary.growth.front();
}

std::string labelled(std::string_view name, const std::string& words) {
  return fmt::format("  {:<8}{}\n", name, words);
}

std::string peak_lines(const WatchSummary& summary, const WatchRecord& record,
                       const WatchPlan& plan) {
  const std::string polled = fmt::format("polled every {} ms, longest gap {:.0f} ms",
                                         plan.interval.count(), 1e3 * summary.longest_gap_s);
  const WatchPeak& peak = summary.proportional.value_or(summary.resident);
  std::string text = labelled(
      "peak", fmt::format("{} {} at {:.1f} s, of {} process{} together ({})",
                          format_bytes(peak.bytes), summary.proportional ? "PSS" : "RSS",
                          peak.time_s, peak.processes, peak.processes == 1 ? "" : "es", polled));
  if (summary.proportional)
    text += labelled("", fmt::format("{} RSS, shared pages counted in each process",
                                     format_bytes(summary.resident.bytes)));
  text += labelled(
      "", fmt::format("{} in process {}: the kernel's own high-water mark of it",
                      format_bytes(summary.highest->high_water_mark), name_of(*summary.highest)));
  if (summary.swapped_peak > 0)
    text += labelled("swap", "peak " + format_bytes(summary.swapped_peak));
  if (!summary.gpu) return text + labelled("GPU", "not watched: " + record.no_gpu);
  return text + labelled("GPU", fmt::format("peak {} {} (polled)", format_bytes(summary.gpu->bytes),
                                            summary.gpu_is_of_the_tree
                                                ? "of the tree"
                                                : "of all devices, other programs included: the "
                                                  "driver does not report these processes alone"));
}

std::string budget_line(const WatchRecord& record, const WatchPlan& plan) {
  if (!plan.budget) return "";
  if (!record.breach)
    return labelled("budget", fmt::format("kept; {} allowed", format_bytes(*plan.budget)));
  const BudgetBreach& breach = *record.breach;
  return labelled(
      "budget",
      fmt::format("EXCEEDED at {:.1f} s: {} held, {} allowed; {} {}, {}", breach.time_s,
                  format_bytes(breach.held), format_bytes(*plan.budget),
                  breach.by_high_water_mark ? "between two polls, by process" : "largest was",
                  name_of(breach.process), format_bytes(breach.process.resident)));
}

}  // namespace

bool WatchSummary::has_leak() const {
  return std::any_of(growth.begin(), growth.end(), [](const WatchedGrowth& one) {
    return one.of == WatchedGrowth::Of::tree && one.finding.verdict == LeakVerdict::leak;
  });
}

void ThinnedSeries::add(double time_s, Bytes bytes) {
  if (polls_++ % stride_ != 0) return;
  const double minutes = time_s / 60;
  if (!series_.at.empty() && minutes <= series_.at.back()) return;
  series_.at.push_back(minutes);
  series_.values.push_back(static_cast<double>(bytes));
  if (series_.size() < kMostPoints) return;
  for (std::vector<double>* numbers : {&series_.at, &series_.values}) {
    for (std::size_t i = 0; 2 * i < numbers->size(); ++i) (*numbers)[i] = (*numbers)[2 * i];
    numbers->resize((numbers->size() + 1) / 2);
  }
  stride_ *= 2;
}

void WatchSummarizer::add(const WatchSample& sample) {
  if (latest_) summary_.longest_gap_s = std::max(summary_.longest_gap_s, sample.time_s - *latest_);
  latest_ = sample.time_s;
  raise(resident_peak_, sample.resident, sample);
  summary_.swapped_peak = std::max(summary_.swapped_peak, sample.swapped);
  if (!sample.processes.empty()) resident_.add(sample.time_s, sample.resident);
  if (sample.proportional) {
    raise(summary_.proportional, *sample.proportional, sample);
    proportional_.add(sample.time_s, *sample.proportional);
  }
  if (sample.gpu) {
    summary_.gpu_is_of_the_tree |= sample.gpu->by_processes.has_value();
    const Bytes used = sample.gpu->by_processes.value_or(0);
    raise(of_tree_.peak, used, sample);
    of_tree_.used.add(sample.time_s, used);
    raise(of_devices_.peak, sample.gpu->used, sample);
    of_devices_.used.add(sample.time_s, sample.gpu->used);
  }
  for (auto& [key, process] : alive_) process.seen = false;
  for (const ProcessUsage& process : sample.processes) add(process, sample.time_s);
  for (const auto& [key, process] : alive_)
    if (!process.seen) judge(process, grew_);
  std::erase_if(alive_, [](const auto& one) { return !one.second.seen; });
}

void WatchSummarizer::add(const ProcessUsage& process, double time_s) {
  const auto [found, is_new] = alive_.try_emplace({process.pid, process.started});
  if (is_new) ++summary_.processes_seen;
  Followed& followed = found->second;
  followed.resident.add(time_s, process.resident);
  followed.last = process;
  followed.seen = true;
  // The kernel updates its counters in batches, so the high-water mark may lag behind RSS.
  const Bytes highest = std::max(process.high_water_mark, process.resident);
  if (summary_.highest && highest <= summary_.highest->high_water_mark) return;
  summary_.highest = process;
  summary_.highest->high_water_mark = highest;
}

void WatchSummarizer::judge(const Followed& process, std::vector<WatchedGrowth>& growing) const {
  const LeakFinding finding = detect_leak(process.resident.series(), options_);
  if (finding.verdict == LeakVerdict::leak)
    growing.push_back({WatchedGrowth::Of::process, "RSS of " + name_of(process.last), finding});
}

WatchSummary WatchSummarizer::summary() const {
  WatchSummary summary = summary_;
  summary.resident = resident_peak_.value_or(WatchPeak{});
  const bool by_pss = proportional_.series().size() >= kFewestLeakPoints;
  summary.growth.push_back(
      {WatchedGrowth::Of::tree, by_pss ? "PSS of the tree" : "RSS of the tree",
       detect_leak(by_pss ? proportional_.series() : resident_.series(), options_)});
  const Gpu& gpu = summary.gpu_is_of_the_tree ? of_tree_ : of_devices_;
  summary.gpu = gpu.peak;
  if (gpu.peak)
    summary.growth.push_back(
        {summary.gpu_is_of_the_tree ? WatchedGrowth::Of::tree : WatchedGrowth::Of::devices,
         summary.gpu_is_of_the_tree ? "GPU memory of the tree" : "GPU memory of the devices",
         detect_leak(gpu.used.series(), options_)});
  std::vector<WatchedGrowth> growing = grew_;
  for (const auto& [key, process] : alive_) judge(process, growing);
  std::stable_sort(growing.begin(), growing.end(),
                   [](const auto& a, const auto& b) { return a.finding.slope > b.finding.slope; });
  std::move(growing.begin(), growing.end(), std::back_inserter(summary.growth));
  return summary;
}

std::string end_in_words(const ProcessEnd& end) {
  if (!end.known) return "watched from outside";
  if (end.signal != 0) return "killed by " + signal_name(end.signal);
  return fmt::format("exit status {}", end.exit_status);
}

std::string to_words(const WatchSummary& summary, const WatchRecord& record, const WatchPlan& plan,
                     const LeakOptions& options) {
  const std::string end = labelled(
      "end", fmt::format("{}, {:.1f} s, {} process{}", end_in_words(record.end), record.duration_s,
                         summary.processes_seen, summary.processes_seen == 1 ? "" : "es"));
  if (!summary.highest)
    return "NOTHING SEEN: the command ended before the first poll; try a shorter --interval\n" +
           end;
  const WatchedGrowth& first = leading(summary);
  std::string text = growth_in_words(first, options) + "\n";
  std::size_t told = 1;
  for (const WatchedGrowth& one : summary.growth)
    if (&one != &first && told++ < kMostNamed) text += labelled("", growth_in_words(one, options));
  text += end + peak_lines(summary, record, plan) + budget_line(record, plan);
  if (!record.left_behind.empty()) {
    Bytes held = 0;
    for (const ProcessUsage& process : record.left_behind) held += process.resident;
    text +=
        labelled("orphans",
                 fmt::format("{} process{} outlived the command and hold {} RSS, such as {}",
                             record.left_behind.size(), record.left_behind.size() == 1 ? "" : "es",
                             format_bytes(held), name_of(record.left_behind.front())));
  }
  return text +
         labelled("cost", fmt::format("watching took {:.1f} % of one core",
                                      100 * record.own_cpu_s / std::max(record.duration_s, 1e-3)));
}

}  // namespace headroom
