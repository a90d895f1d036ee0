// Compares a metric between two configurations, or reads it of one. Samples of the same block form
// pairs; disturbed pairs are left out if times are compared. Exact figures are compared exactly.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/evidence/arm_state.h"
#include "harness/evidence/sample_table.h"
#include "harness/plan/experiment.h"
#include "harness/results/metric.h"
#include "harness/results/sample.h"
#include "harness/stats/paired.h"
#include "harness/stats/verdict.h"

namespace headroom {

// Whether noisy figures may decide. They may not if identical configurations looked different too
// often, or if an injected effect was not detected.
enum class Reliability { full, out_of_calibration, insensitive };
std::string_view reason_code(Reliability reliability);
// One sentence; "" for full reliability.
std::string_view why_not(Reliability reliability);

enum class Scale { log_ratio, difference };

// How much rare slow steps change a comparison. Metrics such as the median step time leave them
// out.
struct Tail {
  std::string metric;  // counts such steps in full
  double theta = 0;    // its log ratio less that of the usual metric: mean over blocks
  Interval ci95;       // of that mean
  std::string why;     // one sentence if the interval excludes 0 and theta exceeds the margin of
                       // noisy figures, else ""
};

// The comparison of one metric between two configurations, or its values in one of them.
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
  std::optional<Tail> tail;  // absent if the metric leaves no steps out
};

// An empty `baseline` stands for no second configuration. Throws Error for an unknown name.
Finding find(const SampleTable& table, const Experiment& experiment, const std::string& baseline,
             const std::string& treatment, const Metric& metric, Scale scale);

// Repeats the comparison at a level corrected for multiple comparisons. Each look at the results
// halves the level: looks at α, α/2, α/4, … cause at most 2α false alarms in total, however many
// there are.
void compare_at(Finding& finding, double alpha);

const Arm& arm_of(const Experiment& experiment, const std::string& name);

}  // namespace headroom
