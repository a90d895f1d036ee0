#include "harness/evidence/compare_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "harness/evidence/evidence.h"
#include "harness/evidence/wording.h"

namespace headroom {
namespace {

constexpr double kMargin = 0.01;
constexpr std::size_t kTold = 3;

struct ArmOfRun {
  const Experiment* experiment;
  const Arm* arm;
};
// Identifies a cell by its definition too: a cell defined differently is another cell.
using CellKey = std::tuple<std::string, std::string, std::string>;

std::vector<std::pair<CellKey, ArmOfRun>> cells_of(const RunInfo& info) {
  std::vector<std::pair<CellKey, ArmOfRun>> cells;
  for (const Experiment& experiment : info.experiments)
    for (const Arm& arm : experiment.arms)
      cells.push_back({{experiment.id, arm.name, arm.cell.id()}, {&experiment, &arm}});
  return cells;
}

std::string name_of(const CellKey& key) {
  return fmt::format("{} [{}]", std::get<0>(key), std::get<1>(key));
}

double relative(double before, double after) {
  if (before == after) return 0;
  return before == 0 ? INFINITY : (after - before) / std::abs(before);
}

CellOutcome judge(const Metric& metric, double before, double after) {
  const double change = relative(before, after) * (metric.better == Metric::Better::more ? -1 : 1);
  if (change > kMargin) return CellOutcome::worse;
  if (change < -kMargin) return CellOutcome::better;
  return change == 0 ? CellOutcome::same : CellOutcome::changed;
}

std::string difference_text(const MetricChange& change) {
  const double difference = change.after - change.before;
  if (change.metric->unit != "B") return effect_text(difference, Scale::difference, "");
  return fmt::format("{}{:.0f} bytes", difference > 0 ? "+" : "\u2212", std::abs(difference));
}

std::string change_text(const MetricChange& change) {
  const double share = relative(change.before, change.after);
  return fmt::format(
      "{} {} → {} ({}{})", change.metric->text, value_text(change.before, change.metric->unit),
      value_text(change.after, change.metric->unit), difference_text(change),
      std::isfinite(share) ? ", " + effect_text(std::log1p(share), Scale::log_ratio, "") : "");
}

void compare_metrics(CellChange& cell, const Spec& device, const SampleTable::ByBlock& first,
                     const SampleTable::ByBlock& second) {
  for (const Metric& metric : metrics()) {
    if (class_on(metric, device) != Metric::Class::exact) continue;
    const auto before = agreed_value(first, metric);
    const auto after = agreed_value(second, metric);
    if (!before || !after || count_as_same(*before, *after, device)) continue;
    cell.changes.push_back({&metric, *before, *after, judge(metric, *before, *after)});
  }
  // Bytes come first, because they are the memory cost of a step; then larger changes.
  std::stable_sort(cell.changes.begin(), cell.changes.end(),
                   [](const MetricChange& a, const MetricChange& b) {
                     const auto rank = [](const MetricChange& change) {
                       return std::pair(change.metric->unit == "B",
                                        std::abs(relative(change.before, change.after)));
                     };
                     return rank(a) > rank(b);
                   });
}

// Returns the worst outcome: a cell that trades one kind of memory for another is worse.
CellOutcome combine(const std::vector<MetricChange>& changes) {
  CellOutcome outcome = CellOutcome::same;
  for (const MetricChange& change : changes) {
    if (change.outcome == CellOutcome::worse) return CellOutcome::worse;
    if (change.outcome == CellOutcome::better || outcome == CellOutcome::same)
      outcome = change.outcome;
  }
  return outcome;
}

CellChange compare_cell(const ArmOfRun& first, const SampleTable& first_table,
                        const ArmOfRun& second, const SampleTable& second_table) {
  CellChange cell;
  cell.experiment = second.experiment->id;
  cell.arm = second.arm->name;
  const ArmState before = arm_state(first_table, *first.experiment, *first.arm);
  const ArmState after = arm_state(second_table, *second.experiment, *second.arm);
  const auto& first_samples = first_table.of(first.experiment->id, first.arm->name);
  const auto& second_samples = second_table.of(second.experiment->id, second.arm->name);
  if (before.result != after.result) {
    const bool lost = before.result == ResultState::present;
    // The program is not to blame if this machine lacks something or the cell was not run.
    const bool elsewhere =
        after.result == ResultState::unavailable || after.result == ResultState::not_run ||
        before.result == ResultState::unavailable || before.result == ResultState::not_run;
    cell.outcome = elsewhere                              ? CellOutcome::not_comparable
                   : lost                                 ? CellOutcome::worse
                   : after.result == ResultState::present ? CellOutcome::better
                                                          : CellOutcome::changed;
    cell.sentence = fmt::format("{} before, {} now", before.why.empty() ? "a result" : before.why,
                                after.why.empty() ? "a result" : after.why);
  } else if (before.result != ResultState::present) {
    cell.sentence = "no result in either: " + after.why;
  } else if (lowering_rules_of(first_samples) != lowering_rules_of(second_samples)) {
    cell.outcome = CellOutcome::not_comparable;
    cell.sentence =
        fmt::format("the lowering rules were {} and are {}", lowering_rules_of(first_samples),
                    lowering_rules_of(second_samples));
  } else {
    compare_metrics(cell, second.arm->cell.device, first_samples, second_samples);
    cell.outcome = combine(cell.changes);
    std::vector<std::string> told;
    for (const MetricChange& change : cell.changes)
      if (told.size() < kTold) told.push_back(change_text(change));
    cell.sentence =
        told.empty() ? "every exact metric is the same" : fmt::format("{}", fmt::join(told, "; "));
    if (cell.changes.size() > kTold)
      cell.sentence += fmt::format("; and {} more metrics", cell.changes.size() - kTold);
  }
  return cell;
}

std::vector<RunDifference> all_differences(const RunInfo& first, const RunInfo& second) {
  std::vector<RunDifference> differences = environment_differences(first, second);
  const auto add = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b) differences.push_back({what, a, b});
  };
  const auto program = [](const RunInfo& info) {
    return fmt::format("{}, commit {}{}", info.headroom.version,
                       info.headroom.commit.value_or("unknown").substr(0, 12),
                       info.headroom.dirty.value_or(false) ? " with changes" : "");
  };
  if (first.headroom.executable_sha256 != second.headroom.executable_sha256)
    differences.insert(differences.begin(), {"the program", program(first), program(second)});
  add("the machine", first.machine.hostname_hash, second.machine.hostname_hash);
  add("the suite", first.suite, second.suite);
  // The seed determines orders and data. Bytes do not depend on it, but accuracy does.
  add("the seed", std::to_string(first.seed), std::to_string(second.seed));
  return differences;
}

}  // namespace

std::string_view to_string(CellOutcome outcome) {
  switch (outcome) {
    case CellOutcome::same:
      return "same";
    case CellOutcome::better:
      return "better";
    case CellOutcome::worse:
      return "worse";
    case CellOutcome::changed:
      return "changed";
    case CellOutcome::not_comparable:
      break;
  }
  return "not comparable";
}

bool RunChanges::has_regression() const {
  return std::any_of(cells.begin(), cells.end(),
                     [](const CellChange& cell) { return cell.outcome == CellOutcome::worse; });
}

RunChanges compare_runs(const RecordedRun& first, const RecordedRun& second) {
  RunChanges changes;
  changes.environment = all_differences(first.info, second.info);
  const SampleTable first_table(first.samples);
  const SampleTable second_table(second.samples);
  const auto first_cells = cells_of(first.info);
  const std::map<CellKey, ArmOfRun> before(first_cells.begin(), first_cells.end());
  std::set<CellKey> present;
  for (const auto& [key, arm] : cells_of(second.info)) {
    present.insert(key);
    const auto found = before.find(key);
    if (found == before.end())
      changes.added.push_back(name_of(key));
    else
      changes.cells.push_back(compare_cell(found->second, first_table, arm, second_table));
  }
  for (const auto& [key, arm] : first_cells)
    if (!present.contains(key)) changes.missing.push_back(name_of(key));
  return changes;
}

}  // namespace headroom
