// Compares a night with what was accepted: exact figures by equality, noisy figures by the levels
// of earlier nights, verdicts by their name.
#pragma once

#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/nights/store.h"
#include "harness/results/run_differences.h"

namespace headroom {

// Worse exact figures, lost results, shifted levels, changed verdicts.
enum class FindingKind { bytes, lost, level, verdict };
std::string_view to_string(FindingKind kind);  // "exact", "lost", "level", "verdict"

struct NightFinding {
  FindingKind kind = FindingKind::bytes;
  std::string what = {};          // cell or claim
  std::string metric = {};        // "" for lost results and verdicts
  std::string sentence = {};      // without its full stop
  std::string since = {};         // night_id: the first one that shows it
  std::string previous = {};      // the night before it; "" if unknown
  std::string since_commit = {};  // "" if unknown
  std::string previous_commit = {};
};

// A change of the series' environment: not a regression, but earlier nights no longer count.
struct EnvironmentMark {
  std::string night_id = {};  // the first night in the new one
  std::vector<RunDifference> differences = {};
};

struct NightCheck {
  Night night = {};
  std::vector<NightFinding> failures = {};  // at most one per cell and metric
  std::vector<NightFinding> notes = {};     // better or undecided: reported, but no failure
  std::vector<EnvironmentMark> marks = {};  // of the examined nights, latest last
  std::vector<std::string> missing = {};
  std::vector<std::string> added = {};
  std::vector<std::string> night_ids = {};  // of the examined nights, the judged one last
  std::size_t cells = 0;                    // cells with results
  std::size_t shifts_held_back = 0;         // not reported, since the night is not trusted

  ExitCode exit_code() const;
  std::string headline() const;  // one sentence
};

NightCheck check_night(const HistoryStore& store, const Night& night);

// The body of an issue, in Markdown: what failed, between which commits, and what to do.
std::string issue_of(const NightCheck& check, const std::string& store);
// Follows reports/schema.json.
std::string to_json(const NightCheck& check, const std::string& store);

}  // namespace headroom
