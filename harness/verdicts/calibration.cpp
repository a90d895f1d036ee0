#include "harness/verdicts/calibration.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/evidence/wording.h"
#include "harness/stats/distributions.h"

namespace headroom {
namespace {

constexpr double kNominalRate = 0.05;
constexpr double kUnbelievable = 0.01;

std::string sentence_of(const IdenticalArms& arms, const Metric& metric) {
  const Comparison& comparison = arms.finding.comparison;
  const auto effect = [&](double theta) {
    return effect_text(theta, arms.finding.scale, metric.unit);
  };
  return fmt::format(
      "{}, the same configuration twice: {} of the second against the first {} (interval {} "
      "… {}, {} pairs): {}.",
      arms.experiment->id, metric.text, effect(comparison.theta), effect(comparison.ci95.low),
      effect(comparison.ci95.high), comparison.pairs,
      arms.alarm ? "they look different, as happens by chance in 1 of 20 comparisons"
                 : "no difference, as expected");
}

}  // namespace

std::vector<IdenticalArms> compare_identical_arms(const std::vector<Experiment>& experiments,
                                                  const SampleTable& table) {
  std::vector<IdenticalArms> comparisons;
  const Metric& metric = find_metric("steady_step_time_ns");
  for (const Experiment& experiment : experiments) {
    for (std::size_t a = 0; a < experiment.arms.size(); ++a) {
      for (std::size_t b = a + 1; b < experiment.arms.size(); ++b) {
        if (experiment.arms[a].cell.id() != experiment.arms[b].cell.id()) continue;
        if (experiment.arms[a].program != experiment.arms[b].program) continue;
        const Finding finding = find(table, experiment, experiment.arms[a].name,
                                     experiment.arms[b].name, metric, Scale::log_ratio);
        const Interval& interval = finding.comparison.ci95;
        if (!finding.compared || finding.comparison.exact || std::isinf(interval.low)) continue;
        IdenticalArms arms{.experiment = &experiment,
                           .first = experiment.arms[a].name,
                           .second = experiment.arms[b].name,
                           .finding = finding,
                           .alarm = interval.low > 0 || interval.high < 0,
                           .why = ""};
        arms.why = sentence_of(arms, metric);
        comparisons.push_back(std::move(arms));
      }
    }
  }
  return comparisons;
}

Calibration count_alarms(const std::vector<IdenticalArms>& comparisons) {
  Calibration counted;
  for (const IdenticalArms& arms : comparisons) {
    ++counted.aa_comparisons;
    if (arms.alarm) ++counted.false_alarms;
  }
  return counted;
}

CalibrationState state_of(const Calibration& counted) {
  CalibrationState state;
  state.counted = counted;
  const auto& [comparisons, alarms] = counted;
  if (comparisons > 0) state.false_alarm_rate = static_cast<double>(alarms) / comparisons;
  if (comparisons < kComparisonsToCalibrate) {
    state.status = "not yet calibrated";
    state.why = fmt::format(
        "{} of {} comparisons of identical configurations on this machine looked different; the "
        "rate of false alarms is known after {}.",
        alarms, comparisons, kComparisonsToCalibrate);
  } else if (binomial_upper_tail(comparisons, kNominalRate, alarms) < kUnbelievable) {
    state.status = "out of calibration";
    state.reliability = Reliability::out_of_calibration;
    state.why = fmt::format(
        "{} of {} comparisons of identical configurations looked different, more than chance "
        "allows at 5 %; "
        "no verdict rests on times.",
        alarms, comparisons);
  } else {
    state.status = "calibrated";
    state.why = fmt::format(
        "{} of {} comparisons of identical configurations looked different, as chance allows at 5 "
        "%.",
        alarms, comparisons);
  }
  return state;
}

}  // namespace headroom
