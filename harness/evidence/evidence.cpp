#include "harness/evidence/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/base/error.h"
#include "harness/device/traits.h"
#include "harness/evidence/wording.h"
#include "harness/stats/median.h"

namespace headroom {
namespace {

struct Code {
  std::string_view name;
  ClaimVerdict verdict;
};

Code code_of(ResultState result) {
  switch (result) {
    case ResultState::unavailable:
    case ResultState::out_of_memory:
      return {to_string(result), ClaimVerdict::not_testable_here};
    case ResultState::not_engaged:
      return {to_string(result), ClaimVerdict::invalid};
    case ResultState::failed:
    case ResultState::present:
    case ResultState::not_run:
      break;
  }
  return {to_string(result), ClaimVerdict::inconclusive};
}

struct Values {
  std::map<int, double> by_block;
  bool agree = true;  // all blocks agree: bit for bit, or to within a share of the value
};

Values values_of(const SampleTable::ByBlock& samples, const Metric& metric, double within) {
  Values values;
  for (const auto& [block, sample] : samples) {
    if (sample->status != SampleStatus::ok) continue;
    const auto value = metric.value(*sample);
    if (!value) continue;
    values.by_block[block] = *value;
    const double first = values.by_block.begin()->second;
    values.agree = values.agree && std::abs(*value - first) <= within * std::abs(first);
  }
  return values;
}

double median_by_block(const Values& values) {
  std::vector<double> all;
  for (const auto& [block, value] : values.by_block) all.push_back(value);
  return median_of(std::move(all));
}

// Converts a value to the scale; NaN if the scale cannot represent it.
double on_scale(double value, Scale scale) {
  if (scale == Scale::difference) return value;
  return value > 0 ? std::log(value) : std::nan("");
}

// Says what happened to both configurations of a comparison, once if it is the same.
std::string what_happened_to_both(const ArmState& first, const Arm& first_arm,
                                  const ArmState& second, const Arm& second_arm) {
  const auto fate = [](const ArmState& state, const Arm& arm) {
    const std::string_view why = state.why;
    return why.starts_with(arm.name + " ") ? why.substr(arm.name.size()) : why;
  };
  const bool fits_two =  // the wording suits two configurations
      first.result != ResultState::not_engaged && first.result != ResultState::not_run;
  if (!fits_two || fate(first, first_arm) != fate(second, second_arm))
    return fmt::format("{}; {}", first.why, second.why);
  return fmt::format("{} and {}{}", first_arm.name, second_arm.name, fate(first, first_arm));
}

void give_up(Finding& finding, Code code, std::string why) {
  finding.reason_code = code.name;
  finding.without = code.verdict;
  finding.why_not = std::move(why);
}

// Compares two exact figures. Equal figures have ratio 1 even if both are 0.
void compare_exactly(Finding& finding, double baseline, double treatment, bool alone) {
  const double difference = alone ? treatment
                                  : (baseline == treatment ? 0
                                                           : on_scale(treatment, finding.scale) -
                                                                 on_scale(baseline, finding.scale));
  if (!std::isfinite(difference))
    return give_up(finding, {"zero_value", ClaimVerdict::inconclusive},
                   "a ratio to or from 0 has no meaning");
  finding.comparison = compare_exact(difference);
  finding.differences = {difference};
  finding.compared = true;
  finding.reason_code = "exact";
}

// Only times and rates are affected by a slow machine; bytes and leaks are not.
bool is_of_time(const Metric& metric) { return metric.unit == "ns" || metric.unit == "1/s"; }

// Collects the differences by block; the metric itself compares steps that took turns. For times, a
// pair is left out if the machine was disturbed during either sample.
void collect_differences(Finding& finding, const SampleTable& table, const Metric& metric,
                         const SampleTable::ByBlock& baseline, const Values& baseline_values,
                         const SampleTable::ByBlock& treatment, const Values& treatment_values,
                         bool alone) {
  for (const auto& [block, value] : treatment_values.by_block) {
    const auto partner = baseline_values.by_block.find(block);
    if (!alone && partner == baseline_values.by_block.end()) continue;
    const bool disturbed =
        table.disturbed(*treatment.at(block)) || (!alone && table.disturbed(*baseline.at(block)));
    if (disturbed && is_of_time(metric)) {
      ++finding.excluded;
      continue;
    }
    std::optional<double> difference;
    if (!alone && metric.in_turns && finding.scale == Scale::log_ratio)
      difference = metric.in_turns(*baseline.at(block), *treatment.at(block));
    const double reference = alone ? 0 : on_scale(partner->second, finding.scale);
    finding.differences.push_back(difference.value_or(on_scale(value, finding.scale) - reference));
  }
}

// Both findings have the same blocks, in the same order.
Tail tail_of(const Finding& usual, const Finding& mean, const Metric& metric,
             const std::string& baseline, const std::string& treatment) {
  std::vector<double> beyond;
  for (std::size_t i = 0; i < usual.differences.size(); ++i)
    beyond.push_back(mean.differences.at(i) - usual.differences[i]);
  Tail tail{.metric = metric.name, .theta = 0, .ci95 = mean_interval(beyond, 0.95), .why = ""};
  tail.theta =
      std::accumulate(beyond.begin(), beyond.end(), 0.0) / static_cast<double>(beyond.size());
  const bool differs =
      (tail.ci95.low > 0 || tail.ci95.high < 0) && std::abs(tail.theta) > std::log1p(kNoisyMargin);
  if (differs) tail.why = tail_sentence(tail, metric, baseline, treatment);
  return tail;
}

// Gives up if one of the two has no result, with the reason of the worse one.
bool give_up_without_result(Finding& finding, const SampleTable& table,
                            const Experiment& experiment, const Arm& baseline,
                            const Arm& treatment) {
  const ArmState states[] = {arm_state(table, experiment, baseline),
                             arm_state(table, experiment, treatment)};
  const ArmState& worse = states[0].result > states[1].result ? states[0] : states[1];
  if (worse.result == ResultState::present) return false;
  const bool both = states[0].result == states[1].result && states[0].why != states[1].why;
  give_up(finding, code_of(worse.result),
          both ? what_happened_to_both(states[0], baseline, states[1], treatment) : worse.why);
  return true;
}

// Whether the differences that were collected can be compared; gives up if they cannot.
bool can_compare(Finding& finding) {
  const bool finite = std::all_of(finding.differences.begin(), finding.differences.end(),
                                  [](double d) { return std::isfinite(d); });
  if (!finite) {
    give_up(finding, {"zero_value", ClaimVerdict::inconclusive},
            "a ratio to or from 0 has no meaning");
    return false;
  }
  if (finding.differences.empty()) {
    give_up(finding, {"no_pairs", ClaimVerdict::inconclusive},
            finding.excluded > 0 ? "the machine was disturbed during every pair"
                                 : "no block has a result of both variants");
    return false;
  }
  return true;
}

}  // namespace

Finding find(const SampleTable& table, const Experiment& experiment, const std::string& baseline,
             const std::string& treatment, const Metric& metric, Scale scale) {
  const bool alone = baseline.empty();
  const Arm& treatment_arm = arm_of(experiment, treatment);
  const Arm& baseline_arm = alone ? treatment_arm : arm_of(experiment, baseline);
  const auto& treatment_samples = table.of(experiment.id, treatment);
  const auto& baseline_samples = table.of(experiment.id, baseline_arm.name);
  const double within = traits_of(treatment_arm.cell.device).exact_within;
  const Values treatment_values = values_of(treatment_samples, metric, within);
  const Values baseline_values = values_of(baseline_samples, metric, within);

  Finding finding;
  finding.exact_within = within;
  finding.scale = scale;
  finding.looks = table.looks(experiment.id);
  if (!treatment_samples.empty()) {
    finding.note = treatment_samples.begin()->second->note;
    finding.engine = treatment_samples.begin()->second->engine;
  }
  if (!treatment_values.by_block.empty())
    finding.treatment_value = median_by_block(treatment_values);
  if (!alone && !baseline_values.by_block.empty())
    finding.baseline_value = median_by_block(baseline_values);

  if (give_up_without_result(finding, table, experiment, baseline_arm, treatment_arm))
    return finding;
  if (treatment_values.by_block.empty() || baseline_values.by_block.empty()) {
    give_up(finding, {"metric_absent", ClaimVerdict::not_testable_here},
            fmt::format("the device {} has no {}", treatment_arm.cell.device.name(), metric.text));
    return finding;
  }
  const bool should_be_exact = class_on(metric, treatment_arm.cell.device) == Metric::Class::exact;
  const bool agree = treatment_values.agree && baseline_values.agree;
  if (should_be_exact && agree) {
    compare_exactly(finding, baseline_values.by_block.begin()->second,
                    treatment_values.by_block.begin()->second, alone);
    const bool repeated =
        std::min(baseline_values.by_block.size(), treatment_values.by_block.size()) > 1;
    if (finding.compared && !repeated) finding.reason_code = "exact_unrepeated";
    return finding;
  }
  finding.demoted = should_be_exact;
  collect_differences(finding, table, metric, baseline_samples, baseline_values, treatment_samples,
                      treatment_values, alone);
  if (!can_compare(finding)) return finding;
  finding.compared = true;
  finding.reason_code = finding.demoted ? "not_deterministic" : "paired";
  compare_at(finding, 0.05);
  if (!metric.mean.empty() && !alone && scale == Scale::log_ratio) {
    const Metric& mean = find_metric(metric.mean);
    finding.tail = tail_of(finding, find(table, experiment, baseline, treatment, mean, scale), mean,
                           baseline, treatment);
  }
  return finding;
}

std::string_view reason_code(Reliability reliability) {
  switch (reliability) {
    case Reliability::out_of_calibration:
      return "out_of_calibration";
    case Reliability::insensitive:
      return "insensitive";
    case Reliability::full:
      break;
  }
  return "";
}

std::string_view why_not(Reliability reliability) {
  switch (reliability) {
    case Reliability::out_of_calibration:
      return "No verdict rests on this: identical configurations have looked different too often "
             "here.";
    case Reliability::insensitive:
      return "No verdict rests on this: the instrument missed an injected effect.";
    case Reliability::full:
      break;
  }
  return "";
}

void compare_at(Finding& finding, double alpha) {
  if (!finding.compared || finding.comparison.exact) return;
  const double share = std::exp2(-finding.looks);
  finding.alpha = alpha * share;
  finding.comparison = compare_pairs(finding.differences, finding.excluded, finding.alpha);
  finding.comparison.p = std::min(1.0, finding.comparison.p / share);
}

const Arm& arm_of(const Experiment& experiment, const std::string& name) {
  for (const Arm& arm : experiment.arms)
    if (arm.name == name) return arm;
  throw Error(fmt::format("experiment '{}' has no variant '{}'", experiment.id, name));
}

}  // namespace headroom
