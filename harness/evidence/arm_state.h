// Whether a configuration has results, and what they agree on.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "harness/base/spec.h"
#include "harness/evidence/sample_table.h"
#include "harness/plan/experiment.h"
#include "harness/results/metric.h"
#include "harness/results/sample.h"

namespace headroom {

// Whether a configuration has results, or why it has none. Of the two states of a comparison, the
// one that stands later in this list is reported.
enum class ResultState { present, unavailable, out_of_memory, not_run, failed, not_engaged };
std::string_view to_string(ResultState state);  // "ok", "unavailable", …, "not_engaged"

struct ArmState {
  ResultState result = ResultState::present;
  std::string why;          // without full stop; "" if there are results
  std::size_t samples = 0;  // with any status
  std::size_t ok = 0;
};
ArmState arm_state(const SampleTable& table, const Experiment& experiment, const Arm& arm);

// Whether two exact figures of this device differ by no more than fresh processes may.
bool count_as_same(double a, double b, const Spec& device);
// Returns the first value if all samples agree on it; nothing if they differ.
std::optional<double> agreed_value(const SampleTable::ByBlock& samples, const Metric& metric);
// Full identity of the lowering rules of the samples; "" if none has a result.
std::string lowering_rules_of(const SampleTable::ByBlock& samples);

}  // namespace headroom
