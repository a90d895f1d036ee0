// Figures and verdicts in words: the plain sentences of verdicts.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/claims/claim.h"
#include "harness/evidence/evidence.h"

namespace headroom {

// 6442450944 B → "6.00 GiB", 70100000 ns → "70.1 ms".
std::string value_text(double value, std::string_view unit);
// Log ratios are written as changes ("−61.5 %", "16×"), differences in their unit ("+0.5").
std::string effect_text(double theta, Scale scale, std::string_view unit);

// The claimed effect of a part, on the scale of theta.
struct ClaimedRange {
  ClaimedEffect effect;
  double low = 0;   // θ* − τ
  double high = 0;  // θ* + τ
};
ClaimedRange claimed_range(const ClaimPart& part, bool exact);
// "−62.0 % (accepted: −65.5 % … −58.1 %)", "less, beyond 1.0 %", "at least 1".
std::string claimed_text(const ClaimPart& part, const Metric& metric, bool exact);

// One sentence about a comparison; `provenance` is "measured", "simulated" or
// "virtual".
std::string evidence_sentence(const ClaimPart& part, const Metric& metric, const Finding& finding,
                              std::string_view provenance);

// Says which configuration has slower or more frequent rare steps, and by how much that moves the
// ratio. `tail` must differ.
std::string tail_sentence(const Tail& tail, const Metric& mean, const std::string& baseline,
                          const std::string& treatment);

// "2…4, 16": the values of a sweep that hold, with neighbours joined to ranges.
std::string range_text(const std::vector<std::string>& values, const std::vector<bool>& holds);

}  // namespace headroom
