// What later nights are held to. The first value seen is accepted, and so is every better one; a
// worse one is not, until somebody accepts it and says why.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/nights/night.h"
#include "harness/results/metric.h"

namespace headroom {

inline constexpr const char* kGone = "gone";  // status of a cell that need not come back

inline constexpr const char* kByHand = "hand";

struct AcceptedCell {
  std::string experiment;
  std::string arm;
  std::string cell_id;
  std::string rules;
  std::string status;  // a cell's, or kGone
  std::map<std::string, double> exact;
  std::string levels_since;  // start of the first night whose noisy figures count

  std::string name() const { return experiment + " [" + arm + "]"; }
};

// One line of the store: a cell or a verdict.
struct Acceptance {
  std::string accepted;  // RFC 3339, UTC
  std::string night_id;
  std::string suite;
  std::string machine;
  std::string scope;  // see scope_of
  std::string by;     // "first seen", "better", kByHand
  std::string reason;
  std::optional<AcceptedCell> cell;
  std::optional<NightVerdict> verdict;
};

// All that stands: of several acceptances of one thing the last.
class AcceptedState {
 public:
  // In the order in which they were accepted.
  explicit AcceptedState(const std::vector<Acceptance>& acceptances);

  // What the cell or verdict of this night is held to; null when it is seen for the first time.
  const AcceptedCell* find(const Night& night, const NightCell& cell) const;
  const NightVerdict* find(const Night& night, const NightVerdict& verdict) const;
  // Cells that this suite had on this machine and that are not in the night, nor accepted as gone.
  std::vector<const Acceptance*> missing_from(const Night& night) const;

 private:
  std::map<std::string, Acceptance> standing_;
};

// More than 0 where `now` is worse than `then`, as a share of it; infinite from 0.
double worsening(const Metric& metric, double then, double now);

// Verdicts that decide nothing are no news: INCONCLUSIVE, NOT-TESTABLE-HERE.
bool decides(const NightVerdict& verdict);

// What a night has to show that needs nobody's word: seen for the first time, or better.
std::vector<Acceptance> self_evident(const Night& night, const AcceptedState& state,
                                     const std::string& now);

Acceptance accept_cell(const Night& night, const NightCell& cell, std::string levels_since,
                       const std::string& reason, const std::string& now);
Acceptance accept_verdict(const Night& night, const NightVerdict& verdict,
                          const std::string& reason, const std::string& now);
Acceptance accept_missing(const Acceptance& missing, const std::string& reason,
                          const std::string& now);

// One line without its end, as reports/schema.json describes it.
std::string to_json(const Acceptance& acceptance);
Acceptance acceptance_from_json(const std::string& text, const std::string& where);

}  // namespace headroom
