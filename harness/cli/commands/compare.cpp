// headroom compare: what changed between two stored runs, or between the memory of two programs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "harness/base/error.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/history.h"
#include "harness/cli/text/changes_json.h"
#include "harness/cli/text/peak_change_text.h"
#include "harness/cli/text/print.h"
#include "harness/cli/text/print_json.h"
#include "harness/evidence/compare_runs.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTold = 5;

enum class Compared { run, gpu_peak, history };

Compared kind_of(const fs::path& place) {
  if (!fs::exists(place))
    throw InputError(
        fmt::format("{}: there is no such file or directory; name two directories of headroom run, "
                    "two of headroom gpu, or two memory snapshots or traces",
                    place.string()));
  if (fs::is_directory(place))
    return fs::exists(place / "gpu.json") ? Compared::gpu_peak : Compared::run;
  return place.extension() == ".json" ? Compared::gpu_peak : Compared::history;
}

const char* name_of_kind(Compared kind) {
  switch (kind) {
    case Compared::run:
      return "a directory of headroom run";
    case Compared::gpu_peak:
      return "a run of headroom gpu";
    case Compared::history:
      break;
  }
  return "a memory snapshot or trace";
}

PeakMemory read_peak(const fs::path& place, Compared kind) {
  if (kind == Compared::gpu_peak) return read_gpu_peak(place, place.string());
  return peak_of_history(read_history(place).trace);
}

ExitCode compare_memory(const CompareOptions& options, Compared kind) {
  const PeakChange change =
      compare_peaks(read_peak(options.first, kind), read_peak(options.second, kind));
  if (options.json) {
    nlohmann::ordered_json json = {{"schema_version", kSchemaVersion},
                                   {"kind", "peak_change"},
                                   {"before", options.first.string()},
                                   {"now", options.second.string()}};
    json.update(to_json(change));
    print_json(json);
  } else {
    out::print("{}", to_words(change, options.all));
  }
  return options.fail_on_worse && change.grew() ? ExitCode::regression : ExitCode::ok;
}

std::size_t count_of(const RunChanges& changes, CellOutcome outcome) {
  return static_cast<std::size_t>(
      std::count_if(changes.cells.begin(), changes.cells.end(),
                    [&](const CellChange& cell) { return cell.outcome == outcome; }));
}

// "WORSE: of 12 configurations in both runs 3 are worse by more than 1 %, …"
void print_answer(const RunChanges& changes) {
  struct Outcome {
    CellOutcome outcome;
    const char* answer;
    const char* words;
  };
  constexpr std::array<Outcome, 5> kOutcomes = {{
      {CellOutcome::worse, "WORSE", "worse by more than 1 %"},
      {CellOutcome::better, "BETTER", "better by more than 1 %"},
      {CellOutcome::changed, "CHANGED", "changed by less"},
      {CellOutcome::not_comparable, "NOT COMPARABLE", "not comparable"},
      {CellOutcome::same, "SAME", "the same to the last bit"},
  }};
  const char* answer = "NOTHING IN COMMON";
  std::vector<std::string> counts;
  for (const auto& [outcome, word, words] : kOutcomes) {
    const std::size_t count = count_of(changes, outcome);
    if (count == 0) continue;
    if (counts.empty()) answer = word;
    counts.push_back(fmt::format("{} {}", count, words));
  }
  out::print("{}: {} configurations are in both runs{}{}.\n", answer, changes.cells.size(),
             counts.empty() ? "" : ": ", fmt::join(counts, ", "));
}

// Returns the cells that are not the same: worse ones, then better ones, then the others, each in
// the order of `changes`.
std::vector<const CellChange*> changed_cells(const RunChanges& changes) {
  std::vector<const CellChange*> cells;
  for (const CellChange& cell : changes.cells)
    if (cell.outcome != CellOutcome::same) cells.push_back(&cell);
  const auto rank = [](const CellChange* cell) {
    return cell->outcome == CellOutcome::worse ? 0 : cell->outcome == CellOutcome::better ? 1 : 2;
  };
  std::stable_sort(cells.begin(), cells.end(),
                   [&](const CellChange* a, const CellChange* b) { return rank(a) < rank(b); });
  return cells;
}

void print_changes(const RunChanges& changes, bool all) {
  print_answer(changes);
  const auto cells = changed_cells(changes);
  const std::size_t told = all ? cells.size() : std::min(cells.size(), kMostTold);
  for (std::size_t i = 0; i < told; ++i)
    out::print("{}: {} [{}]: {}.\n", to_string(cells[i]->outcome), cells[i]->experiment,
               cells[i]->arm, cells[i]->sentence);
  if (all) {
    for (const std::string& cell : changes.missing) out::print("missing: {}.\n", cell);
    for (const std::string& cell : changes.added) out::print("new: {}.\n", cell);
  } else if (told < cells.size() || changes.missing.size() + changes.added.size() > 0) {
    out::print(
        "Not shown: {} changes, {} configurations of the first run only and {} of the second; "
        "--all lists them.\n",
        cells.size() - told, changes.missing.size(), changes.added.size());
  }
  for (const auto& [what, first, second] : changes.environment)
    out::print("{} was '{}' and is '{}'.\n", what, first, second);
  out::print("{}\n", kWhyNoTimes);
}

}  // namespace

ExitCode compare_command(const CompareOptions& options) {
  const Compared kind = kind_of(options.first);
  if (const Compared other = kind_of(options.second); other != kind)
    throw InputError(fmt::format(
        "{} is {} and {} is {}: compare two of a kind (a run of headroom gpu keeps its "
        "memory snapshots in its directory)",
        options.first.string(), name_of_kind(kind), options.second.string(), name_of_kind(other)));
  if (kind != Compared::run) return compare_memory(options, kind);
  const RunChanges changes = compare_runs(read_run(options.first), read_run(options.second));
  if (options.json)
    out::print("{}\n", changes_json(changes));
  else
    print_changes(changes, options.all);
  return options.fail_on_worse && changes.has_regression() ? ExitCode::regression : ExitCode::ok;
}

}  // namespace headroom
