#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "harness/base/registry.h"
#include "harness/cli/text/oom_text.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/replay/replayed.h"
#include "harness/memory/allocator.h"

namespace headroom {
namespace {

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string size_or_dash(const std::optional<Bytes>& bytes) {
  return bytes ? format_bytes(*bytes) : "-";
}

void print_row(const ReplayRow& row, std::size_t width) {
  const ReplayOutcome& outcome = row.outcome;
  if (!row.refused.empty()) {
    out::print("{:<{}} not available here: {}\n", row.spec.to_string(), width, row.refused);
    return;
  }
  const Ledger& ledger = outcome.ledger;
  out::print("{:<{}} {:<8} {:>11} {:>9} {:>9} {:>9} {:>13} {:>8} {:>7}\n", row.spec.to_string(),
             width, outcome.failure ? "failed" : "served",
             format_bytes(ledger.reserved.overall_peak), percent(ledger.utilisation),
             percent(ledger.internal_fragmentation), percent(ledger.external_fragmentation),
             size_or_dash(row.viable.smallest), outcome.device_allocations,
             row.ns_per_operation ? fmt::format("{:.0f}", *row.ns_per_operation) : "-");
}

// Strategies with the same failure share a paragraph.
void print_failures(const std::vector<ReplayRow>& rows) {
  std::vector<std::pair<std::string, std::vector<std::string>>> paragraphs;
  for (const ReplayRow& row : rows) {
    if (!row.refused.empty() || !row.outcome.failure) continue;
    const std::string text = failure_text(*row.outcome.failure);
    auto alike = std::find_if(paragraphs.begin(), paragraphs.end(),
                              [&](const auto& paragraph) { return paragraph.first == text; });
    if (alike == paragraphs.end()) alike = paragraphs.insert(paragraphs.end(), {text, {}});
    alike->second.push_back(row.spec.to_string());
  }
  for (const auto& [text, names] : paragraphs) out::print("\n{}: {}", fmt::join(names, ", "), text);
}

void print_counterfactual(const std::vector<ReplayRow>& rows) {
  std::vector<std::string> served, refused;
  for (const ReplayRow& row : rows) {
    if (!row.refused.empty()) continue;
    (row.outcome.failure ? refused : served).push_back(row.spec.to_string());
  }
  if (refused.empty()) {
    out::print("\nEvery strategy served all of it.\n");
  } else if (served.empty()) {
    out::print("\nNo strategy served all of it.\n");
  } else {
    out::print("\nServed every request: {}.\n", fmt::join(served, ", "));
  }
}

void print_streams(std::uint32_t streams, const std::vector<ReplayRow>& rows) {
  std::vector<std::string> apart;
  for (const ReplayRow& row : rows)
    if (keeps_streams_apart(row.spec)) apart.push_back(row.spec.to_string());
  out::print(
      "Blocks of {} streams. Kept apart by: {}. The others serve one stream what another freed, "
      "which somebody must wait for.\n",
      streams, apart.empty() ? "none of these" : fmt::format("{}", fmt::join(apart, ", ")));
}

}  // namespace

bool keeps_streams_apart(const Spec& strategy) {
  return Registry<AllocatorStrategy>::instance()
      .find(strategy.innermost().name())
      .keeps_streams_apart;
}

void print_replay_table(const Replayed& replayed) {
  const auto& [file, trace, list, problem, device, rows, foresight] = replayed;
  out::print("{}: {} allocations and frees, written by {}\n", file.string(), list.requests.size(),
             printable(trace.header.allocator));
  if (list.streams > 1) print_streams(list.streams, rows);
  out::print(
      "Live bytes at their highest: {}. Replayed (simulated) on a capacity of {} in granules of "
      "{}.\n\n",
      format_bytes(list.peak_live_bytes), format_bytes(device.capacity),
      format_bytes(device.granule));
  std::size_t width = 8;
  for (const ReplayRow& row : rows) width = std::max(width, row.spec.to_string().size());
  out::print("{:<{}} {:<8} {:>11} {:>9} {:>9} {:>9} {:>13} {:>8} {:>7}\n", "", width, "", "peak",
             "", "internal", "external", "smallest", "device", "ns per");
  out::print("{:<{}} {:<8} {:>11} {:>9} {:>9} {:>9} {:>13} {:>8} {:>7}\n", "strategy", width,
             "outcome", "reserved", "utilised", "fragm.", "fragm.", "capacity", "allocs", "op");
  for (const ReplayRow& row : rows) print_row(row, width);
  const ReplayRow* tried = nullptr;
  Bytes coarsest = 0;
  for (const ReplayRow& row : rows) {
    coarsest = std::max(coarsest, row.viable.resolution);
    if (row.refused.empty() && tried == nullptr) tried = &row;
    if (!row.viable.holes.empty())
      out::print("{} fails at {} of the capacities tried although a smaller one serves.\n",
                 row.spec.to_string(), row.viable.holes.size());
  }
  if (tried != nullptr)
    out::print("\nSmallest capacity: sought from {} to {}{}; - where none serves.\n",
               format_bytes(tried->viable.first), format_bytes(tried->viable.last),
               coarsest > 0 ? ", known to " + format_bytes(coarsest) : "");
  out::print(
      "With the whole history known in advance, a plan needs {}, {} above its lower bound (found "
      "in {:.1f} "
      "s).\n",
      format_bytes(foresight.bytes),
      percent(static_cast<double>(foresight.bytes) /
                  static_cast<double>(std::max<Bytes>(1, problem.least)) -
              1),
      foresight.seconds);
  if (foresight.fit == Foresight::Fit::no)
    out::print("No plan fits into {}: that is proven.\n", format_bytes(device.capacity));
  if (foresight.fit == Foresight::Fit::unknown)
    out::print("None was found that fits into {}; one might (--plan-time).\n",
               format_bytes(device.capacity));
  print_failures(rows);
  print_counterfactual(rows);
}

}  // namespace headroom
