// headroom history: stores nights and finds regressions.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "harness/base/file.h"
#include "harness/base/registry.h"
#include "harness/cli/commands/commands.h"
#include "harness/cli/text/print.h"
#include "harness/nights/check.h"
#include "harness/nights/levels.h"
#include "harness/results/schema_check.h"

namespace headroom {
namespace {

ExitCode add_to(HistoryStore store, const HistoryOptions& options) {
  const std::filesystem::path verdicts = options.operand + "/verdicts.json";
  const RecordedRun run = read_run(options.operand);
  if (!std::filesystem::exists(verdicts))
    throw InputError(fmt::format("{}: is not there; judge the run first: headroom verify {}",
                                 verdicts.string(), options.operand));
  const std::string judged = read_file(verdicts);
  check_record(judged, RecordKind::verdicts, verdicts.string());
  const Night night = night_of(run, judged, options.machine);
  const bool added = store.add(night);
  out::print("{} {}: {} configurations, {} verdicts.\n", night.night_id,
             added ? "added" : "was there already", night.cells.size(), night.verdicts.size());
  return ExitCode::ok;
}

Night judged_night(const HistoryStore& store, const HistoryOptions& options) {
  if (options.operand.empty()) return store.last_night();
  // A run is found by its name, even when the shell completed it to a path.
  std::string name = options.operand;
  while (!name.empty() && name.back() == '/') name.pop_back();
  return store.night_of_run(std::filesystem::path(name).filename().string());
}

void print(const std::string& title, const std::vector<NightFinding>& findings) {
  for (const NightFinding& finding : findings)
    out::print("{}: {}: {} (since {}).\n", title, finding.what, finding.sentence, finding.since);
}

void print(const NightCheck& check) {
  print("worse", check.failures);
  print("note", check.notes);
  for (const std::string& cell : check.missing) out::print("missing: {}.\n", cell);
  for (const std::string& cell : check.added) out::print("new: {}.\n", cell);
  for (const EnvironmentMark& mark : check.marks) {
    out::print("environment: changed with {}; earlier times no longer count.\n", mark.night_id);
    for (const auto& [what, first, second] : mark.differences)
      out::print("  {} was '{}' and is '{}'.\n", what, first, second);
  }
  if (!check.night.distrust.empty())
    out::print(stderr,
               "headroom: {} {} shifts of levels are not reported; see: headroom selftest\n",
               check.night.distrust, check.shifts_held_back);
  out::print("{}\n", check.headline());
}

ExitCode check(const HistoryStore& store, const HistoryOptions& options) {
  const NightCheck result = check_night(store, judged_night(store, options));
  if (!options.issue.empty())
    write_file_durably(options.issue, issue_of(result, store.directory().string()));
  if (options.json) {
    const std::string json = to_json(result, std::filesystem::absolute(store.directory()).string());
    check_record(json, RecordKind::check, "headroom history check --json");
    out::print("{}\n", json);
  } else {
    print(result);
  }
  return result.exit_code();
}

// `*` and `?` are wildcards; brackets are literal, since names contain them.
bool matches(const std::string& glob, const std::string& name) {
  std::string pattern;
  for (const char c : glob)
    pattern += c == '[' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// The start of the level that is accepted: the latest shift of any metric of the cell.
std::string levels_since(const NightCell& cell, const std::vector<Shift>& shifts,
                         const std::vector<Night>& nights, const AcceptedState& state) {
  const AcceptedCell* accepted = state.find(nights.back(), cell);
  std::string since = accepted == nullptr ? nights.back().started : accepted->levels_since;
  for (const Shift& shift : shifts)
    for (const Night& night : nights)
      if (shift.cell->name() == cell.name() && night.night_id == shift.first_night)
        since = std::max(since, night.started);
  return since;
}

ExitCode accept(HistoryStore store, const HistoryOptions& options) {
  const Night night = store.last_night();
  std::vector<Night> nights = store.nights_before(night, kNightsLookedAt - 1);
  nights.push_back(night);
  const AcceptedState state(store.acceptances_for(night));
  const auto shifts = shifts_of(nights, state);
  const std::string now = timestamp_now();
  std::vector<Acceptance> accepted;
  std::vector<std::string> names;
  const auto wanted = [&](const std::string& name) {
    names.push_back(name);
    return matches(options.operand, name);
  };
  for (const NightVerdict& verdict : night.verdicts)
    if (wanted(verdict.claim))
      accepted.push_back(accept_verdict(night, verdict, options.reason, now));
  for (const NightCell& cell : night.cells)
    if (wanted(cell.name()))
      accepted.push_back(
          accept_cell(night, cell, levels_since(cell, shifts, nights, state), options.reason, now));
  for (const Acceptance* missing : state.missing_from(night))
    if (wanted(missing->cell->name()))
      accepted.push_back(accept_missing(*missing, options.reason, now));
  if (accepted.empty())
    throw_unknown_name("claim or configuration of the last night", options.operand, names);
  store.accept(accepted);
  for (const Acceptance& acceptance : accepted)
    out::print("accepted: {}, as of {}.\n",
               acceptance.verdict
                   ? acceptance.verdict->name() + " is " + acceptance.verdict->verdict
                   : acceptance.cell->name(),
               night.night_id);
  return ExitCode::ok;
}

ExitCode merge(HistoryStore store, const HistoryOptions& options) {
  const HistoryStore::Merged merged = store.merge(HistoryStore(options.operand));
  out::print("{} nights and {} acceptances added.\n", merged.nights, merged.acceptances);
  return ExitCode::ok;
}

}  // namespace

ExitCode history_command(const HistoryOptions& options) {
  const HistoryStore store(options.store);
  switch (options.action) {
    case HistoryAction::add:
      return add_to(store, options);
    case HistoryAction::check:
      return check(store, options);
    case HistoryAction::accept:
      return accept(store, options);
    case HistoryAction::merge:
      break;
  }
  return merge(store, options);
}

}  // namespace headroom
