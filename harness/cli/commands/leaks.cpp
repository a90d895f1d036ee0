// headroom leaks: which blocks of an allocation history outlive their step, and which of them grow.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/history.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/results/schema_check.h"
#include "harness/trace/retained_blocks.h"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kWindows = 64;
constexpr int kWarmupSteps = 2;
constexpr std::size_t kSitesToName = 12;

// A history divided into steps: its own or, where it records none, pieces of equal length.
struct Steps {
  Trace trace;
  bool own = false;
  int count = 0;
  int warmup = 0;
};

Steps divided_into_steps(Trace trace, const std::optional<int>& warmup) {
  int first = 0;
  int last = 0;
  for (const TraceEvent& event : trace.events) {
    first = std::min(first, event.step);
    last = std::max(last, event.step);
  }
  // A history with more steps than events has no training steps, whatever another program's file
  // says.
  if (last > 1 && first >= 0 && static_cast<std::size_t>(last) <= trace.events.size())
    return {.trace = std::move(trace),
            .own = true,
            .count = last,
            .warmup = warmup.value_or(std::min(kWarmupSteps, last - 1))};
  return {.trace = cut_into_windows(std::move(trace), kWindows),
          .own = false,
          .count = kWindows,
          .warmup = warmup.value_or(kWindows / 4)};
}

std::string in_words(const LeakFinding& finding) {
  switch (finding.verdict) {
    case LeakVerdict::leak:
      return "LEAKS";
    case LeakVerdict::undecided:
      return finding.blocks < kFewestLeakPoints ? "too short to tell" : "undecided";
    case LeakVerdict::no_leak:
    case LeakVerdict::levels_off:
      return std::string(to_string(finding.verdict));
  }
  return "";
}

std::string signed_bytes(double bytes) {
  return fmt::format("{}{}", bytes < 0 ? "-" : "+",
                     format_bytes(static_cast<Bytes>(std::llround(std::abs(bytes)))));
}

bool leaks_here(const RetainedSite& site) { return site.growth.verdict == LeakVerdict::leak; }

std::string name_of_site(const RetainedSite& site) {
  return fmt::format("{} ({})", site.op.empty() ? "unknown place" : printable(site.op),
                     to_string(site.role));
}

// Says how the sum of live bytes behaves. It says nothing of single places, which may behave
// differently.
std::string in_all(const LeakFinding& all, const char* unit) {
  switch (all.verdict) {
    case LeakVerdict::leak:
      return fmt::format("all live bytes together grow by {} per {}", signed_bytes(all.slope),
                         unit);
    case LeakVerdict::no_leak:
    case LeakVerdict::levels_off:
      return "all live bytes together do not grow, because other places shrink";
    case LeakVerdict::undecided:
      break;
  }
  return "whether all live bytes together grow is undecided";
}

// The first line: the answer, from the total and from every place.
std::string answer(const Steps& steps, const LeakFinding& all,
                   const std::vector<RetainedSite>& sites) {
  const char* unit = steps.own ? "step" : "window";
  const int looked_at = steps.count - steps.warmup;
  const auto leaking = std::count_if(sites.begin(), sites.end(), leaks_here);
  if (leaking > 0) {  // sites are sorted, fastest growth first
    const auto first = std::find_if(sites.begin(), sites.end(), leaks_here);
    return fmt::format("LEAKS: {} grows by {} per {}{}; {}.", name_of_site(*first),
                       signed_bytes(first->growth.slope), unit,
                       leaking > 1 ? fmt::format(", and {} more places grow", leaking - 1) : "",
                       in_all(all, unit));
  }
  if (all.verdict == LeakVerdict::leak)
    return fmt::format("LEAKS: {}, although no single place grows all the time.",
                       in_all(all, unit));
  if (all.blocks < kFewestLeakPoints)
    return fmt::format("TOO SHORT TO TELL: {} {}s after the warm-up; at least {} are needed.",
                       looked_at, unit, kFewestLeakPoints);
  const bool open = std::any_of(sites.begin(), sites.end(), [](const RetainedSite& site) {
    return site.growth.verdict == LeakVerdict::undecided;
  });
  if (all.verdict == LeakVerdict::undecided || open) {
    std::string text = fmt::format("UNDECIDED in {} {}s: ", looked_at, unit);
    text += all.verdict == LeakVerdict::undecided
                ? fmt::format(
                      "live bytes go up and down, so only growth of {} per {} or more "
                      "would have shown",
                      format_bytes(
                          static_cast<Bytes>(std::llround(std::max(1.0, all.detectable_slope)))),
                      unit)
                : "all live bytes together do not grow, but some places below may";
    if (all.more_needed)
      text += fmt::format("; record about {:.0f} {}s more", std::ceil(*all.more_needed), unit);
    return text + ".";
  }
  return fmt::format("NO LEAK in {} {}s: live bytes {}after a {} do not grow.", looked_at, unit,
                     all.verdict == LeakVerdict::levels_off ? "grew at first, and then those " : "",
                     unit);
}

void print_answer(const std::string& file, const Steps& steps, const LeakFinding& all,
                  const std::vector<RetainedSite>& sites) {
  const char* unit = steps.own ? "step" : "window";
  out::print("{}\n", answer(steps, all, sites));
  out::print("{}: {} events in {} {}s, the first {} left out as warm-up.\n", file,
             steps.trace.events.size(), steps.count, unit, steps.warmup);
  if (!steps.own)
    out::print("It records no steps: its events are divided into {} windows of equal length.\n",
               kWindows);
  if (sites.empty()) {
    out::print("No block outlives the {} after the one that allocated it.\n", unit);
    return;
  }
  out::print(
      "\nBlocks that outlive the {} after the one that allocated them, fastest growth first:\n",
      unit);
  out::print("{:>13} {:>13}  {:<18} where they were allocated\n", fmt::format("per {}", unit),
             "most held", "verdict");
  for (std::size_t i = 0; i < std::min(kSitesToName, sites.size()); ++i)
    out::print("{:>13} {:>13}  {:<18} {}\n", signed_bytes(sites[i].growth.slope),
               format_bytes(sites[i].most_held), in_words(sites[i].growth), name_of_site(sites[i]));
  if (sites.size() > kSitesToName) out::print("and {} more\n", sites.size() - kSitesToName);
}

Json to_json(const LeakFinding& finding) {
  return {{"verdict", to_string(finding.verdict)}, {"bytes_per_step", finding.slope}};
}

Json to_json(const std::string& file, const Steps& steps, const LeakFinding& all,
             const std::vector<RetainedSite>& sites) {
  Json json = {{"schema_version", kSchemaVersion},
               {"kind", "leaks"},
               {"file", file},
               {"events", steps.trace.events.size()},
               {"steps", steps.count},
               {"steps_are_the_historys_own", steps.own},
               {"warmup_steps", steps.warmup},
               {"live_bytes", to_json(all)},
               {"sites", Json::array()}};
  for (const RetainedSite& site : sites)
    json["sites"].push_back({{"op", site.op},
                             {"role", to_string(site.role)},
                             {"retained_blocks", site.blocks},
                             {"retained_bytes", site.bytes},
                             {"most_held_bytes", site.most_held},
                             {"growth", to_json(site.growth)}});
  return json;
}

}  // namespace

ExitCode leaks_command(const LeaksOptions& options) {
  Trace trace = read_history(options.file).trace;
  if (trace.events.empty())
    throw InputError(fmt::format("{}: contains no allocations", options.file.string()));
  const Steps steps = divided_into_steps(std::move(trace), options.warmup);
  if (steps.warmup >= steps.count)
    throw InputError(fmt::format("--warmup {}: the history has {} steps; leave some to look at",
                                 steps.warmup, steps.count));
  const LeakFinding all = growth_of_live_bytes(steps.trace, steps.warmup);
  const auto sites = find_retained(steps.trace, steps.warmup);
  if (options.json)
    print_json(to_json(options.file.string(), steps, all, sites));
  else
    print_answer(options.file.string(), steps, all, sites);
  // A site may leak while others shrink, which the total does not show.
  const bool leaks =
      all.verdict == LeakVerdict::leak || std::any_of(sites.begin(), sites.end(), leaks_here);
  return options.fail_on_leak && leaks ? ExitCode::leak_found : ExitCode::ok;
}

}  // namespace headroom
