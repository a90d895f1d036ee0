#include "harness/trace/retained_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "harness/base/error.h"

namespace headroom {
namespace {

using Site = std::pair<Role, std::uint32_t>;

struct Life {
  Site site;
  std::int32_t taken = 0;
  std::int32_t given_back = 0;  // the step of the free; beyond the last step: never freed
  Bytes requested = 0;
};

std::vector<Life> lives_of(const Trace& trace, std::int32_t last_step) {
  std::vector<Life> lives;
  std::unordered_map<std::uint32_t, std::size_t> live;  // block id → index
  for (const TraceEvent& event : trace.events) {
    if (event.kind == EventKind::alloc) {
      live[event.id] = lives.size();
      lives.push_back({{event.role, event.op}, event.step, last_step + 1, event.requested});
    } else if (event.kind == EventKind::free) {
      const auto found = live.find(event.id);
      if (found == live.end()) continue;
      lives[found->second].given_back = event.step;
      live.erase(found);
    }
  }
  return lives;
}

std::int32_t last_step_of(const Trace& trace) {
  std::int32_t last = 0;
  for (const TraceEvent& event : trace.events) last = std::max(last, event.step);
  return last;
}

std::string name_of(const Trace& trace, std::uint32_t op) {
  return op < trace.op_names.size() ? trace.op_names[op] : "";
}

// The bytes that each site holds after each step from the last one of the warm-up on.
std::map<Site, Series> held_by(const std::map<Site, RetainedSite>& sites,
                               const std::vector<Life>& lives, std::int32_t warmup_steps,
                               std::int32_t last_step) {
  std::map<Site, Series> held;
  for (const auto& [site, retained] : sites) {
    Series& series = held[site];
    for (std::int32_t step = warmup_steps; step <= last_step; ++step) {
      series.at.push_back(step);
      series.values.push_back(0);
    }
  }
  for (const Life& life : lives) {
    const auto found = held.find(life.site);
    if (found == held.end()) continue;
    const std::int32_t begin = std::max(life.taken, warmup_steps);
    if (life.given_back <= begin) continue;
    std::vector<double>& change = found->second.values;
    change[static_cast<std::size_t>(begin - warmup_steps)] += static_cast<double>(life.requested);
    if (life.given_back <= last_step)
      change[static_cast<std::size_t>(life.given_back - warmup_steps)] -=
          static_cast<double>(life.requested);
  }
  for (auto& [site, series] : held)
    std::partial_sum(series.values.begin(), series.values.end(), series.values.begin());
  return held;
}

}  // namespace

std::vector<RetainedSite> find_retained(const Trace& trace, int warmup_steps, int steps_later) {
  if (warmup_steps < 0 || steps_later < 1)
    throw Error(
        "retained blocks need a warm-up of 0 or more steps and a distance of at least 1 step");
  const std::int32_t last_step = last_step_of(trace);
  const std::int32_t first = warmup_steps + 1;
  const std::int32_t eligible = last_step - steps_later - warmup_steps;
  if (eligible < 1) return {};

  std::map<Site, RetainedSite> sites;
  const std::vector<Life> lives = lives_of(trace, last_step);
  for (const Life& life : lives) {
    if (life.taken < first || life.taken > last_step - steps_later) continue;
    if (life.given_back <= life.taken + steps_later) continue;
    RetainedSite& site = sites[life.site];
    ++site.blocks;
    site.bytes += life.requested;
  }
  constexpr std::size_t kMostPoints = 100'000'000;
  if (sites.size() > kMostPoints / static_cast<std::size_t>(last_step + 1))
    throw InputError(
        fmt::format("{} places in the program keep blocks over {} steps, too many "
                    "to analyse",
                    sites.size(), last_step));
  const std::map<Site, Series> held = held_by(sites, lives, warmup_steps, last_step);
  std::vector<RetainedSite> result;
  for (auto& [site, retained] : sites) {
    retained.role = site.first;
    retained.op = name_of(trace, site.second);
    retained.bytes_per_step = static_cast<double>(retained.bytes) / eligible;
    // The warm-up is already excluded and byte counts carry no noise, so no further part is
    // dropped.
    retained.growth = detect_leak(held.at(site), {.warmup_share = 0});
    const std::vector<double>& values = held.at(site).values;
    retained.most_held = static_cast<Bytes>(*std::max_element(values.begin(), values.end()));
    result.push_back(std::move(retained));
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return std::pair(a.growth.slope, a.bytes_per_step) >
           std::pair(b.growth.slope, b.bytes_per_step);
  });
  return result;
}

LeakFinding growth_of_live_bytes(const Trace& trace, int warmup_steps) {
  const std::int32_t last_step = last_step_of(trace);
  std::vector<double> change(static_cast<std::size_t>(last_step) + 2, 0);
  for (const Life& life : lives_of(trace, last_step)) {
    change[static_cast<std::size_t>(life.taken)] += static_cast<double>(life.requested);
    change[static_cast<std::size_t>(life.given_back)] -= static_cast<double>(life.requested);
  }
  Series series;
  double live = 0;
  for (std::int32_t step = 0; step <= last_step; ++step) {
    live += change[static_cast<std::size_t>(step)];
    if (step < warmup_steps) continue;
    series.at.push_back(step);
    series.values.push_back(live);
  }
  return detect_leak(series, {.warmup_share = 0});
}

Trace cut_into_windows(Trace trace, int windows) {
  const std::size_t events = trace.events.size();
  for (std::size_t i = 0; i < events; ++i)
    trace.events[i].step =
        1 + static_cast<std::int32_t>(i * static_cast<std::size_t>(windows) / events);
  return trace;
}

}  // namespace headroom
