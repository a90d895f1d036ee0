// The reference for later nights. The first value seen is accepted, and so is every better one; a
// worse one is accepted only by hand, with a reason.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/nights/night.h"
#include "harness/results/metric.h"

namespace headroom {

inline constexpr const char* kGone = "gone";  // status of a cell whose absence was accepted

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

// The current state: the last acceptance of each cell and verdict.
class AcceptedState {
 public:
  // In the order in which they were accepted.
  explicit AcceptedState(const std::vector<Acceptance>& acceptances);

  // The reference for the cell or verdict of this night; null when it is new.
  const AcceptedCell* find(const Night& night, const NightCell& cell) const;
  const NightVerdict* find(const Night& night, const NightVerdict& verdict) const;
  // Cells that this suite had on this machine, that are missing from the night and not accepted as
  // gone.
  std::vector<const Acceptance*> missing_from(const Night& night) const;

 private:
  std::map<std::string, Acceptance> standing_;
};

// How much worse `now` is than `then`, as a share of `then`: above 0 when worse, infinite when
// `then` is 0.
double worsening(const Metric& metric, double then, double now);

// False for INCONCLUSIVE and NOT-TESTABLE-HERE, whose changes are not reported.
bool decides(const NightVerdict& verdict);

// The values of a night that are accepted automatically: new or better ones.
std::vector<Acceptance> self_evident(const Night& night, const AcceptedState& state,
                                     const std::string& now);

Acceptance accept_cell(const Night& night, const NightCell& cell, std::string levels_since,
                       const std::string& reason, const std::string& now);
Acceptance accept_verdict(const Night& night, const NightVerdict& verdict,
                          const std::string& reason, const std::string& now);
Acceptance accept_missing(const Acceptance& missing, const std::string& reason,
                          const std::string& now);

// One line of JSON (reports/schema.json), without the newline.
std::string to_json(const Acceptance& acceptance);
Acceptance acceptance_from_json(const std::string& text, const std::string& where);

}  // namespace headroom
