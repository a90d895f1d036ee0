// The evidence of samples about a metric of one or two arms. Samples form pairs, disturbed pairs
// are left out if times are compared, and exact figures are compared exactly.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/evidence/sample_table.h"
#include "harness/plan/experiment.h"
#include "harness/results/metric.h"
#include "harness/results/sample.h"
#include "harness/stats/paired.h"
#include "harness/stats/verdict.h"

namespace headroom {

// Whether noisy figures may decide. They may not if identical arms looked different too often, or
// if an injected effect was not detected.
enum class Trust { full, out_of_calibration, insensitive };
std::string_view reason_code(Trust trust);
// One sentence for readers; "" for full trust.
std::string_view why_not(Trust trust);

// Why an arm has no result, in increasing severity: a comparison reports the worse of its two arms.
enum class Absence { none, unavailable, out_of_memory, not_run, failed, not_engaged };

struct ArmState {
  Absence absence = Absence::none;
  std::string why;          // one sentence without full stop; "" if there are results
  std::size_t samples = 0;  // with any status
  std::size_t ok = 0;
};
ArmState arm_state(const SampleTable& table, const Experiment& experiment, const Arm& arm);

// Returns the value on which all samples of an arm that have one agree; nothing if they differ.
std::optional<double> agreed_value(const SampleTable::ByBlock& samples, const Metric& metric);
// Full identity of the lowering rules of the samples; "" if none has a result.
std::string lowering_rules_of(const SampleTable::ByBlock& samples);

enum class Scale { log_ratio, difference };

// Whether steps that are rare and expensive make two arms differ otherwise than their usual steps
// do. A metric that rests on usual steps does not show that.
struct Tail {
  std::string metric;  // in which such steps count in full
  double theta = 0;  // its log ratio of the two arms, less that of the usual steps; mean of blocks
  Interval ci95;     // of that mean
  std::string why;   // one sentence if the interval excludes 0 and theta is beyond the margin of
                     // noisy figures, else ""
};

// The comparison of one metric between two arms, or of one arm alone (`baseline` empty).
struct Finding {
  Scale scale = Scale::log_ratio;
  bool compared = false;
  ClaimVerdict without = ClaimVerdict::inconclusive;  // verdict if nothing could be compared
  std::string reason_code;  // "exact", "paired", or why not: "out_of_memory", "zero_value", …
  std::string why_not;      // "" when compared
  std::optional<double> baseline_value;  // medians
  std::optional<double> treatment_value;
  std::vector<double> differences;  // by block: the input of the statistics
  std::size_t excluded = 0;
  bool demoted = false;     // should be exact but differed between processes
  int looks = 0;            // looks at the results before the last blocks were added
  double alpha = 0.05;      // significance level of intervals, corrected for multiplicity and looks
  double exact_within = 0;  // share by which processes may differ where they count as exact
  Comparison comparison;
  std::string note;          // a scenario's remark
  std::string engine;        // the framework that ran, with its version; "" for Headroom
  std::optional<Tail> tail;  // absent where the metric leaves no steps out
};

Finding find(const SampleTable& table, const Experiment& experiment, const std::string& baseline,
             const std::string& treatment, const Metric& metric, Scale scale);

// Repeats the comparison at a level corrected for multiple comparisons. Each look at the results
// halves the level: looks at α, α/2, α/4, … cause at most 2α false alarms in total, however many
// there are.
void compare_at(Finding& finding, double alpha);

const Arm& arm_of(const Experiment& experiment, const std::string& name);

}  // namespace headroom
