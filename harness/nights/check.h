// A night held to what was accepted: exact figures by equality, noisy ones by the levels of the
// nights before, verdicts by their word.
#pragma once

#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/nights/store.h"
#include "harness/results/run_differences.h"

namespace headroom {

// Exact figures that are worse, results that are gone, shifted levels; verdicts.
enum class FindingKind { bytes, lost, level, verdict };
std::string_view to_string(FindingKind kind);  // "exact", "lost", "level", "verdict"

struct NightFinding {
  FindingKind kind = FindingKind::bytes;
  std::string what = {};          // cell or claim
  std::string metric = {};        // "" for lost results and verdicts
  std::string sentence = {};      // without its full stop
  std::string since = {};         // night_id: the first one that shows it
  std::string previous = {};      // the one before; "" where that is not known
  std::string since_commit = {};  // "" where they are not known
  std::string previous_commit = {};
};

// Where the environment of the series changed: no regression, but what came before does not count.
struct EnvironmentMark {
  std::string night_id = {};  // the first night in the new one
  std::vector<RunDifference> differences = {};
};

struct NightCheck {
  Night night = {};
  std::vector<NightFinding> failures = {};  // at most one per cell and metric
  std::vector<NightFinding> notes = {};     // better, or undecided: told, and no failure
  std::vector<EnvironmentMark> marks = {};  // of the nights looked at, the latest last
  std::vector<std::string> missing = {};
  std::vector<std::string> added = {};
  std::vector<std::string> night_ids = {};  // looked at, the judged one last
  std::size_t cells = 0;                    // with results
  std::size_t shifts_held_back = 0;  // of noisy levels, because the night is not to be trusted

  ExitCode exit_code() const;
  std::string headline() const;  // one sentence
};

NightCheck check_night(const HistoryStore& store, const Night& night);

// A body for an issue, in Markdown: what failed, between which commits, and what to do.
std::string issue_of(const NightCheck& check, const std::string& store);
// As reports/schema.json describes it.
std::string to_json(const NightCheck& check, const std::string& store);

}  // namespace headroom
