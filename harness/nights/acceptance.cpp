#include "harness/nights/acceptance.h"

#include <cmath>
#include <limits>
#include <set>

namespace headroom {
namespace {

// The key includes the rules, because other rules give other bytes.
std::string key_of(const std::string& suite, const std::string& scope,
                   const std::string& experiment, const std::string& arm,
                   const std::string& cell_id, const std::string& rules) {
  return suite + "\n" + scope + "\n" + experiment + "\n" + arm + "\n" + cell_id + "\n" + rules;
}

std::string key_of(const std::string& scope, const NightVerdict& verdict) {
  return "\n" + scope + "\n" + verdict.claim + "\n" + verdict.device_class;
}

std::string key_of(const Acceptance& acceptance) {
  if (acceptance.verdict) return key_of(acceptance.scope, *acceptance.verdict);
  const AcceptedCell& cell = *acceptance.cell;
  return key_of(acceptance.suite, acceptance.scope, cell.experiment, cell.arm, cell.cell_id,
                cell.rules);
}

bool was_tried(const NightCell& cell) {
  return cell.status != "unavailable" && cell.status != "not_run";
}

Acceptance of_night(const Night& night, std::string scope, const char* by, std::string reason,
                    const std::string& now) {
  return {.accepted = now,
          .night_id = night.night_id,
          .suite = night.suite,
          .machine = night.machine,
          .scope = std::move(scope),
          .by = by,
          .reason = std::move(reason),
          .cell = std::nullopt,
          .verdict = std::nullopt};
}

AcceptedCell accepted_from(const NightCell& cell, std::string levels_since) {
  return {.experiment = cell.experiment,
          .arm = cell.arm,
          .cell_id = cell.cell_id,
          .rules = cell.rules,
          .status = cell.status,
          .exact = cell.exact,
          .levels_since = std::move(levels_since)};
}

// The accepted cell, updated with figures that are better in this night or new.
std::optional<AcceptedCell> improved(const AcceptedCell& accepted, const NightCell& cell) {
  if (cell.status != kResult) return std::nullopt;
  if (accepted.status != kResult) return accepted_from(cell, accepted.levels_since);
  AcceptedCell next = accepted;
  for (const auto& [name, value] : cell.exact) {
    const auto [found, is_new] = next.exact.emplace(name, value);
    if (!is_new && worsening(find_metric(name), found->second, value) < 0) found->second = value;
  }
  if (next.exact == accepted.exact) return std::nullopt;
  return next;
}

}  // namespace

AcceptedState::AcceptedState(const std::vector<Acceptance>& acceptances) {
  for (const Acceptance& acceptance : acceptances)
    standing_.insert_or_assign(key_of(acceptance), acceptance);
}

const AcceptedCell* AcceptedState::find(const Night& night, const NightCell& cell) const {
  const std::string scope = scope_of(night, cell.device_class);
  if (const auto found = standing_.find(
          key_of(night.suite, scope, cell.experiment, cell.arm, cell.cell_id, cell.rules));
      found != standing_.end())
    return &*found->second.cell;
  if (!cell.rules.empty()) return nullptr;
  // A cell without a result has no rules, so it is looked up without them.
  const std::string prefix =
      key_of(night.suite, scope, cell.experiment, cell.arm, cell.cell_id, "");
  const auto found = standing_.lower_bound(prefix);
  if (found == standing_.end() || !found->first.starts_with(prefix)) return nullptr;
  return &*found->second.cell;
}

const NightVerdict* AcceptedState::find(const Night& night, const NightVerdict& verdict) const {
  const auto found = standing_.find(key_of(scope_of(night, verdict.device_class), verdict));
  return found == standing_.end() ? nullptr : &*found->second.verdict;
}

std::vector<const Acceptance*> AcceptedState::missing_from(const Night& night) const {
  const auto identity = [](const auto& cell) {
    return cell.experiment + "\n" + cell.arm + "\n" + cell.cell_id;
  };
  std::set<std::string> told;
  for (const NightCell& cell : night.cells) told.insert(identity(cell));
  for (const auto& [key, acceptance] : standing_)
    if (acceptance.cell && acceptance.cell->status == kGone)
      told.insert(identity(*acceptance.cell));
  std::vector<const Acceptance*> missing;
  for (const auto& [key, acceptance] : standing_)
    if (acceptance.cell && acceptance.suite == night.suite && acceptance.machine == night.machine &&
        told.insert(identity(*acceptance.cell)).second)
      missing.push_back(&acceptance);
  return missing;
}

double worsening(const Metric& metric, double then, double now) {
  if (then == now) return 0;
  const double more = metric.better == Metric::Better::less ? now - then : then - now;
  if (then == 0) return std::copysign(std::numeric_limits<double>::infinity(), more);
  return more / std::abs(then);
}

bool decides(const NightVerdict& verdict) {
  return verdict.verdict != "INCONCLUSIVE" && verdict.verdict != "NOT-TESTABLE-HERE";
}

std::vector<Acceptance> self_evident(const Night& night, const AcceptedState& state,
                                     const std::string& now) {
  std::vector<Acceptance> found;
  for (const NightCell& cell : night.cells) {
    if (!was_tried(cell)) continue;
    const AcceptedCell* accepted = state.find(night, cell);
    const bool is_new = accepted == nullptr || accepted->status == kGone;
    const auto next = is_new ? accepted_from(cell, night.started) : improved(*accepted, cell);
    if (!next) continue;
    found.push_back(of_night(night, scope_of(night, cell.device_class),
                             is_new ? "first seen" : "better", "", now));
    found.back().cell = next;
  }
  for (const NightVerdict& verdict : night.verdicts) {
    if (!decides(verdict) || state.find(night, verdict) != nullptr) continue;
    found.push_back(of_night(night, scope_of(night, verdict.device_class), "first seen", "", now));
    found.back().verdict = verdict;
  }
  return found;
}

Acceptance accept_cell(const Night& night, const NightCell& cell, std::string levels_since,
                       const std::string& reason, const std::string& now) {
  Acceptance acceptance = of_night(night, scope_of(night, cell.device_class), kByHand, reason, now);
  acceptance.cell = accepted_from(cell, std::move(levels_since));
  return acceptance;
}

Acceptance accept_verdict(const Night& night, const NightVerdict& verdict,
                          const std::string& reason, const std::string& now) {
  Acceptance acceptance =
      of_night(night, scope_of(night, verdict.device_class), kByHand, reason, now);
  acceptance.verdict = verdict;
  return acceptance;
}

Acceptance accept_missing(const Acceptance& missing, const std::string& reason,
                          const std::string& now) {
  Acceptance acceptance = missing;
  acceptance.accepted = now;
  acceptance.by = kByHand;
  acceptance.reason = reason;
  acceptance.cell->status = kGone;
  return acceptance;
}

}  // namespace headroom
