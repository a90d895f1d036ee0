#include "harness/nights/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "harness/evidence/arm_state.h"
#include "harness/evidence/wording.h"
#include "harness/nights/levels.h"

namespace headroom {
namespace {

std::string change_text(const Metric& metric, double before, double after) {
  const double share = before == 0 ? INFINITY : after / before;
  const std::string amount = metric.unit == "B"
                                 ? fmt::format("{:+.0f} bytes", after - before)
                                 : effect_text(after - before, Scale::difference, "");
  return fmt::format("{} {} → {} ({}{})", metric.text, value_text(before, metric.unit),
                     value_text(after, metric.unit), amount,
                     std::isfinite(share) && share > 0
                         ? ", " + effect_text(std::log(share), Scale::log_ratio, "")
                         : "");
}

const Metric* known_metric(const std::string& name) {
  const auto found = std::find_if(metrics().begin(), metrics().end(),
                                  [&](const Metric& metric) { return metric.name == name; });
  return found == metrics().end() ? nullptr : &*found;
}

using Shows = std::function<bool(const Night&)>;

class NightJudge {
 public:
  NightJudge(NightCheck& check, const std::vector<Night>& nights, const AcceptedState& state)
      : check_(check), nights_(nights), state_(state) {}

  void judge_cell(const NightCell& cell) {
    const AcceptedCell* accepted = state_.find(check_.night, cell);
    if (accepted == nullptr || accepted->status == kGone) return;
    if (cell.status == kResult) ++check_.cells;
    if (cell.status != accepted->status) {
      judge_status(cell, *accepted);
    } else if (cell.status == kResult) {
      for (const auto& [name, before] : accepted->exact)
        if (const Metric* metric = known_metric(name)) judge_exact(cell, *metric, before);
    }
  }

  void judge_verdict(const NightVerdict& verdict) {
    const NightVerdict* accepted = state_.find(check_.night, verdict);
    if (accepted == nullptr || accepted->verdict == verdict.verdict) return;
    NightFinding finding{
        .kind = FindingKind::verdict,
        .what = verdict.name(),
        .sentence = fmt::format("accepted as {}, now {}", accepted->verdict, verdict.verdict)};
    locate(finding, [&](const Night& night) {
      return std::any_of(night.verdicts.begin(), night.verdicts.end(), [&](const auto& other) {
        return other.name() == verdict.name() && other.verdict == verdict.verdict;
      });
    });
    (decides(verdict) ? check_.failures : check_.notes).push_back(finding);
  }

  void judge_levels() {
    for (const Shift& shift : shifts_of(nights_, state_)) {
      NightFinding finding{
          .kind = FindingKind::level,
          .what = shift.cell->name(),
          .metric = shift.metric->name,
          .sentence = fmt::format("{}; p = {:.1g} among all configurations",
                                  change_text(*shift.metric, shift.before, shift.after), shift.p)};
      name_nights(finding, shift.first_night, shift.previous_night);
      if (!shift.worse)
        check_.notes.push_back(finding);
      else if (check_.night.distrust.empty())
        check_.failures.push_back(finding);
      else
        ++check_.shifts_held_back;
    }
  }

 private:
  void judge_status(const NightCell& cell, const AcceptedCell& accepted) {
    const bool untried = cell.status == "unavailable" || cell.status == "not_run";
    const bool better = cell.status == kResult;
    NightFinding finding{
        .kind = FindingKind::lost,
        .what = cell.name(),
        .sentence = better
                        ? fmt::format("has a result, where it was accepted as {}", accepted.status)
                        : cell.why};
    locate(finding, [&](const Night& night) {
      const NightCell* other = cell_of(night, cell);
      return other != nullptr && other->status == cell.status;
    });
    (better || untried ? check_.notes : check_.failures).push_back(finding);
  }

  void judge_exact(const NightCell& cell, const Metric& metric, double before) {
    const auto now = cell.exact.find(metric.name);
    NightFinding finding{
        .kind = FindingKind::bytes, .what = cell.name(), .metric = metric.name, .sentence = {}};
    if (now == cell.exact.end()) {
      finding.sentence = fmt::format("{} was exact and now differs between processes", metric.text);
    } else if (is_worse(cell, metric, before, now->second)) {
      finding.sentence = change_text(metric, before, now->second);
    } else {
      return;
    }
    locate(finding, [&](const Night& night) {
      const NightCell* other = cell_of(night, cell);
      if (other == nullptr || other->status != kResult) return false;
      const auto value = other->exact.find(metric.name);
      return value == other->exact.end() || is_worse(cell, metric, before, value->second);
    });
    check_.failures.push_back(finding);
  }

  static bool is_worse(const NightCell& cell, const Metric& metric, double before, double now) {
    return worsening(metric, before, now) > 0 &&
           !count_as_same(before, now, Spec(cell.device_class));
  }

  const NightCell* cell_of(const Night& night, const NightCell& cell) {
    auto [cells, is_new] = cells_.try_emplace(&night);
    if (is_new)
      for (const NightCell& other : night.cells) cells->second[key_of(other)] = &other;
    const auto found = cells->second.find(key_of(cell));
    return found == cells->second.end() ? nullptr : found->second;
  }
  static std::string key_of(const NightCell& cell) {
    return cell.experiment + "\n" + cell.arm + "\n" + cell.cell_id;
  }

  // Finds the first night of the uninterrupted series, up to the judged night, that shows the
  // finding.
  void locate(NightFinding& finding, const Shows& shows) {
    std::size_t first = nights_.size() - 1;
    while (first > 0 && shows(nights_[first - 1])) --first;
    name_nights(finding, nights_[first].night_id, first == 0 ? "" : nights_[first - 1].night_id);
  }

  void name_nights(NightFinding& finding, const std::string& since, const std::string& previous) {
    finding.since = since;
    finding.previous = previous;
    for (const Night& night : nights_) {
      if (night.night_id == since) finding.since_commit = night.commit.value_or("");
      if (night.night_id == previous) finding.previous_commit = night.commit.value_or("");
    }
  }

  NightCheck& check_;
  const std::vector<Night>& nights_;
  const AcceptedState& state_;
  std::unordered_map<const Night*, std::unordered_map<std::string, const NightCell*>> cells_;
};

std::vector<EnvironmentMark> marks_in(const std::vector<Night>& nights) {
  std::vector<EnvironmentMark> marks;
  for (std::size_t i = 1; i < nights.size(); ++i)
    if (nights[i].environment_id != nights[i - 1].environment_id)
      marks.push_back(
          {nights[i].night_id, differences_of(nights[i - 1].environment, nights[i].environment)});
  return marks;
}

// Returns the cells that no earlier night of this suite on this machine had.
std::vector<std::string> added_cells(const std::vector<Night>& nights) {
  std::vector<std::string> added;
  if (nights.size() < 2) return added;
  std::unordered_map<std::string, bool> known;
  for (const Night& night : nights)
    for (const NightCell& cell : night.cells) {
      const std::string identity = cell.name() + "\n" + cell.cell_id;
      if (&night != &nights.back())
        known[identity] = true;
      else if (!known.contains(identity))
        added.push_back(cell.name());
    }
  return added;
}

std::size_t count(const std::vector<NightFinding>& findings, bool verdicts) {
  return static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(), [=](const NightFinding& finding) {
        return (finding.kind == FindingKind::verdict) == verdicts;
      }));
}

}  // namespace

std::string_view to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::bytes:
      return "exact";
    case FindingKind::lost:
      return "lost";
    case FindingKind::level:
      return "level";
    case FindingKind::verdict:
      break;
  }
  return "verdict";
}

ExitCode NightCheck::exit_code() const {
  if (count(failures, false) > 0) return ExitCode::regression;
  if (count(failures, true) > 0) return ExitCode::verdict_changed;
  return night.distrust.empty() ? ExitCode::ok : ExitCode::not_calibrated;
}

std::string NightCheck::headline() const {
  const std::size_t regressions = count(failures, false);
  const std::size_t verdicts = count(failures, true);
  if (regressions + verdicts > 0)
    return fmt::format("{} of {}: worse than accepted in {} place{}, {} verdict{} changed.",
                       night.suite, night.started, regressions, regressions == 1 ? "" : "s",
                       verdicts, verdicts == 1 ? "" : "s");
  if (!night.distrust.empty())
    return fmt::format("{} of {}: exact figures as accepted; times cannot be trusted.", night.suite,
                       night.started);
  return fmt::format("{} of {}: {} configurations as accepted, or better{}.", night.suite,
                     night.started, cells,
                     night_ids.size() == 1 ? "; the first night of its kind" : "");
}

NightCheck check_night(const HistoryStore& store, const Night& night) {
  std::vector<Night> nights = store.nights_before(night, kNightsLookedAt - 1);
  nights.push_back(night);
  const AcceptedState state(store.acceptances_for(night));
  NightCheck check{.night = night};
  for (const Night& looked_at : nights) check.night_ids.push_back(looked_at.night_id);
  check.marks = marks_in(nights);
  check.added = added_cells(nights);
  for (const Acceptance* acceptance : state.missing_from(night))
    check.missing.push_back(acceptance->cell->name());
  NightJudge judge(check, nights, state);
  for (const NightCell& cell : night.cells) judge.judge_cell(cell);
  judge.judge_levels();
  for (const NightVerdict& verdict : night.verdicts) judge.judge_verdict(verdict);
  return check;
}

}  // namespace headroom
