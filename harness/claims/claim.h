// A published claim as data: its source, what to run, and how to judge it. Read from
// bench/claims/*.toml, whose README describes every key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/spec.h"
#include "harness/plan/experiment.h"

namespace headroom {

// How a part turns samples into a number and the number into a verdict.
enum class Judge {
  ratio,       // treatment / baseline, on the log scale
  difference,  // treatment − baseline, in the metric's own unit
  bound,       // the value of one configuration, against a limit
  predicate,   // the value of one configuration, a yes or a no
};

// A parameter that all configurations share, varied over a list of values.
struct Sweep {
  std::string parameter;
  std::vector<std::string> values;
  std::string axis = "workload";
};

struct ClaimExperiment {
  std::string name;
  Spec device;
  std::optional<Sweep> sweep;
  int blocks = 2;
  int timeout_s = 300;
  double estimated_seconds = 0;  // per sample; 0 if unknown
  std::vector<Arm> arms;         // in the order of the file, before the sweep
};

// The claimed figure of a part. Effects of the judge `ratio` are ratios − 1; the other judges use
// the metric's own unit.
struct ClaimedFigure {
  std::optional<double> value;  // needs `tolerance`, a share of the value (of its logarithm)
  int direction = 0;            // −1 or +1; the sign of `value` where there is one
  std::optional<double> at_least;
  std::optional<double> at_most;
  // Expected value of a predicate, whose metric is 1 if true and 0 if false.
  std::optional<bool> holds;
  double tolerance = 0;
  std::optional<double> delta;  // differences within ±delta count as none
};

enum class PartKind {
  direction,  // whether it is more or less at all
  number,     // whether the size is as claimed
  cause,      // whether the stated reason is the cause
  interface,  // whether what the claim says to use exists
  control,    // not claimed; shows that the instrument would detect the effect
};

struct ClaimPart {
  std::string name;
  std::string text;
  std::string found;  // the sentence of the finding, with a placeholder for figures; "" if none
  PartKind kind = PartKind::direction;
  Judge judge = Judge::ratio;
  std::vector<std::string> metrics;
  std::vector<std::string> experiments;
  std::string baseline;  // name of a configuration; "" for judges that look at one
  std::string treatment;
  ClaimedFigure claimed;
};

struct ClaimSource {
  std::string title;
  std::string section;
  std::string date;  // "" if the source has none
  std::string url;   // https://…, "" if none is known
};

struct ClaimSubject {
  std::string engine;
  std::string device_class;  // the only class that can be REPRODUCED or REFUTED
  std::string text;
  // Allocator strategies that follow the engine's own rules. Reserved and allocated bytes measured
  // under them on meta count as evidence on the subject itself, marked simulated.
  std::vector<std::string> allocators;
};

struct Claim {
  std::string id;
  std::string title;
  std::string statement;
  ClaimSource source;
  ClaimSubject subject;
  std::vector<std::string> pitfalls;
  std::vector<std::string> limits;
  std::string instead;
  std::vector<ClaimExperiment> experiments;
  std::vector<ClaimPart> parts;
};

std::string_view to_string(Judge judge);
// Whether the judge looks at the treatment only.
bool needs_no_baseline(Judge judge);
std::string_view to_string(PartKind kind);

// Throws InputError with file and line for anything that is malformed, unknown or inconsistent.
Claim read_claim(const std::string& path);
// Reads every *.toml of the directory, sorted by file name. Also throws InputError if two claims
// share an id.
std::vector<Claim> read_claims(const std::string& directory);

// Throws InputError if the axis has no such parameter.
void set_swept(Cell& cell, const Sweep& sweep, const std::string& value);

// Makes one Experiment per sweep value, with an id such as "S02/v100/batch=32" and point "32".
std::vector<Experiment> experiments_of(const Claim& claim);
std::vector<Experiment> experiments_of(const Claim& claim, const ClaimExperiment& experiment);

}  // namespace headroom
