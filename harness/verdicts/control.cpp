#include "harness/verdicts/control.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/registry.h"
#include "harness/evidence/wording.h"

namespace headroom {
namespace {

bool is_injected(const Arm& arm) { return arm.cell.inject.name() != kNoInjection; }

bool has_interval(const Comparison& comparison) {
  return std::isfinite(comparison.ci95.low) && std::isfinite(comparison.ci95.high);
}

Detection detection_of(const Finding& finding) {
  if (!finding.compared || !has_interval(finding.comparison)) return Detection::untested;
  // Every injection makes its figure larger.
  return finding.comparison.ci95.low > 0 ? Detection::detected : Detection::missed;
}

std::string certainty_text(const Finding& finding, const std::string& unit) {
  const Comparison& comparison = finding.comparison;
  if (comparison.exact) return "exact";
  return fmt::format("interval {} … {}, {} pairs",
                     effect_text(comparison.ci95.low, finding.scale, unit),
                     effect_text(comparison.ci95.high, finding.scale, unit), comparison.pairs);
}

std::string sentence_of(const Control& control) {
  const Finding& finding = control.finding;
  const std::string injected = fmt::format("Injected: {}. ", control.injected);
  if (!finding.compared) return fmt::format("{}Not tested: {}.", injected, finding.why_not);
  if (control.detection == Detection::untested)
    return fmt::format("{}Not tested: {} pairs are too few for an interval.", injected,
                       finding.comparison.pairs);
  const std::string& unit = control.metric->unit;
  const std::string found = fmt::format(
      "{}: {} with it, {} without, {} ({})", control.metric->text,
      value_text(*finding.treatment_value, unit), value_text(*finding.baseline_value, unit),
      effect_text(finding.comparison.theta, finding.scale, unit), certainty_text(finding, unit));
  if (control.detection == Detection::detected)
    return fmt::format("{}Detected in {}.", injected, found);
  if (finding.comparison.exact) return fmt::format("{}Missed in {}.", injected, found);
  return fmt::format("{}Missed in {}; only an effect of {} would have been detected reliably.",
                     injected, found, effect_text(finding.comparison.mde, finding.scale, unit));
}

Control judge(const Experiment& experiment, const Arm& arm, const SampleTable& table) {
  const InjectionKind& kind = Registry<InjectionKind>::instance().find(arm.cell.inject.name());
  const bool ratio = kind.shows == InjectionKind::Shows::ratio;
  Control control{
      .experiment = &experiment,
      .arm = &arm,
      .metric = &find_metric(kind.metric),
      .injected = kind.text(arm.cell.inject),
      .finding = find(table, experiment, experiment.arms.front().name, arm.name,
                      find_metric(kind.metric), ratio ? Scale::log_ratio : Scale::difference),
      .detection = Detection::untested,
      .why = ""};
  control.detection = detection_of(control.finding);
  control.why = sentence_of(control);
  return control;
}

std::size_t count(const std::vector<Control>& controls, Detection detection) {
  return static_cast<std::size_t>(
      std::count_if(controls.begin(), controls.end(),
                    [&](const Control& control) { return control.detection == detection; }));
}

}  // namespace

std::string_view to_string(Detection detection) {
  switch (detection) {
    case Detection::detected:
      return "seen";
    case Detection::missed:
      return "missed";
    case Detection::untested:
      break;
  }
  return "not tested";
}

std::vector<Control> judge_controls(const std::vector<Experiment>& experiments,
                                    const SampleTable& table) {
  std::vector<Control> controls;
  for (const Experiment& experiment : experiments) {
    if (experiment.kind != ExperimentKind::control) continue;
    if (is_injected(experiment.arms.front())) continue;  // a filter dropped the one without effect
    for (const Arm& arm : experiment.arms)
      if (is_injected(arm)) controls.push_back(judge(experiment, arm, table));
  }
  return controls;
}

Sensitivity sensitivity_of(const std::vector<Control>& controls) {
  const std::size_t missed = count(controls, Detection::missed);
  const std::size_t tested = missed + count(controls, Detection::detected);
  if (missed > 0) {
    const auto first = std::find_if(controls.begin(), controls.end(), [](const Control& control) {
      return control.detection == Detection::missed;
    });
    return {
        .status = "insensitive",
        .why = fmt::format(
            "{} of {} injected effects {} not detected{} {}; no verdict rests on times.", missed,
            tested, missed == 1 ? "was" : "were", missed == 1 ? ":" : ", such as", first->injected),
        .reliability = Reliability::insensitive};
  }
  const bool timed = std::any_of(controls.begin(), controls.end(), [](const Control& control) {
    return control.detection == Detection::detected && !control.finding.comparison.exact;
  });
  if (tested == 0 || !timed)
    return {.status = "not tested",
            .why = tested == 0
                       ? "No effect was injected to test the instrument; headroom selftest does "
                         "that."
                       : "Injected effects were detected in exact figures. Detection in times was "
                         "not tested here; headroom selftest tests it.",
            .reliability = Reliability::full};
  return {.status = "sensitive",
          .why = fmt::format("All {} injected effects were detected.", tested),
          .reliability = Reliability::full};
}

}  // namespace headroom
