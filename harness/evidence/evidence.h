// What two arms (or one) say about a metric: pairs formed, disturbed ones left out where times are
// compared, exact figures compared as exact.
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

// Whether noisy figures may decide: not when identical arms have looked different too often, nor
// when an effect put in on purpose was not seen.
enum class Trust { full, out_of_calibration, insensitive };
std::string_view reason_code(Trust trust);
// One sentence for readers; "" for full trust.
std::string_view why_not(Trust trust);

// Why an arm has no result: worst first, so that a claim says the worst of its two arms.
enum class Absence { none, unavailable, out_of_memory, not_run, failed, not_engaged };

struct ArmState {
  Absence absence = Absence::none;
  std::string why;          // one sentence without its full stop; "" when there are results
  std::size_t samples = 0;  // of any status
  std::size_t ok = 0;
};
ArmState arm_state(const SampleTable& table, const Experiment& experiment, const Arm& arm);

// What those of an arm's samples that have results agree on; nothing where they do not.
std::optional<double> agreed_value(const SampleTable::ByBlock& samples, const Metric& metric);
// Full identity of the lowering rules they ran under; "" where none has a result.
std::string lowering_rules_of(const SampleTable::ByBlock& samples);

enum class Scale { log_ratio, difference };

// What the samples say about one metric of two arms, or of one (`baseline` empty).
struct Finding {
  Scale scale = Scale::log_ratio;
  bool compared = false;
  ClaimVerdict without = ClaimVerdict::inconclusive;  // the word where nothing could be compared
  std::string reason_code;  // "exact", "paired", or why not: "out_of_memory", "zero_value", …
  std::string why_not;      // "" when compared
  std::optional<double> baseline_value;  // medians
  std::optional<double> treatment_value;
  std::vector<double> differences;  // by block, what the statistics saw
  std::size_t excluded = 0;
  bool demoted = false;  // should be exact, and differed between processes
  int looks = 0;         // at the results before the last blocks were added
  double alpha = 0.05;   // level of the intervals, corrected for other comparisons and for looks
  Comparison comparison;
  std::string note;  // what a scenario adds in words
};

Finding find(const SampleTable& table, const Experiment& experiment, const std::string& baseline,
             const std::string& treatment, const Metric& metric, Scale scale);

// Does the same comparison at a level corrected for others. Each look at the results halves it:
// looks at α, α/2, α/4, … raise at most 2α false alarms together, however many there are.
void compare_at(Finding& finding, double alpha);

const Arm& arm_of(const Experiment& experiment, const std::string& name);

}  // namespace headroom
