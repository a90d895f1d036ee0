#include "harness/verdicts/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "harness/evidence/wording.h"
#include "harness/results/json/cell_json.h"
#include "harness/results/schema_check.h"
#include "harness/verdicts/calibration.h"
#include "harness/verdicts/control.h"
#include "harness/verdicts/judgement.h"
#include "harness/verdicts/matrix.h"
#include "harness/verdicts/summary.h"

namespace headroom {
namespace {

// make(item, more...) of every item.
template <typename Items, typename Make, typename... More>
Json array_of(const Items& items, Make make, const More&... more) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(make(item, more...));
  return list;
}

Json interval_json(const Interval& interval) {
  return Json::array({number_or_null(interval.low), number_or_null(interval.high)});
}

Json tail_json(const std::optional<Tail>& tail) {
  if (!tail) return nullptr;
  return {{"metric", tail->metric},
          {"theta", number_or_null(tail->theta)},
          {"ci95", interval_json(tail->ci95)},
          {"why", text_or_null(tail->why)}};
}

Json comparison_json(const Finding& finding, double delta, std::optional<double> p_adjusted,
                     std::string_view verdict, const CalibrationState& calibration) {
  const Comparison& comparison = finding.comparison;
  const bool ratio = finding.scale == Scale::log_ratio;
  const bool noisy = finding.compared && !comparison.exact;
  Json json;
  json["estimator"] = noisy ? "hodges_lehmann" : "exact";
  json["scale"] = ratio ? "log_ratio" : "difference";
  json["theta"] = finding.compared ? number_or_null(comparison.theta) : Json();
  if (ratio)
    json["effect"] = finding.compared ? number_or_null(std::expm1(comparison.theta)) : Json();
  json["ci90"] = finding.compared ? interval_json(comparison.ci90) : Json();
  json["ci95"] = finding.compared ? interval_json(comparison.ci95) : Json();
  json["n_pairs"] = comparison.pairs;
  json["excluded_pairs"] = finding.excluded;
  json["delta"] = delta;
  json["mde"] = noisy ? number_or_null(comparison.mde) : Json();
  json["wanted_pairs"] =
      noisy && delta > 0 ? Json(pairs_needed(finding.differences, delta, finding.alpha)) : Json();
  json["p"] = noisy ? Json(comparison.p) : Json();
  json["p_adj"] = value_or_null(p_adjusted);
  json["tail"] = tail_json(finding.tail);
  json["looks"] = finding.looks;
  json["exact"] = finding.compared && comparison.exact;
  json["verdict"] = verdict;
  json["reason_code"] = finding.reason_code;
  json["aa_false_alarm_rate"] = noisy ? value_or_null(calibration.false_alarm_rate) : Json();
  return json;
}

Json evidence_json(const Evidence& evidence, const ClaimPart& part,
                   const CalibrationState& calibration) {
  const Finding& finding = evidence.finding;
  const double delta = needs_no_baseline(part.judge)
                           ? 0
                           : claimed_range(part, finding.comparison.exact).effect.delta;
  Json json;
  json["experiment"] = evidence.experiment.id;
  json["point"] = evidence.experiment.point;
  json["metric"] = evidence.metric->name;
  json["unit"] = evidence.metric->unit;
  json["device"] = evidence.source->device.to_string();
  json["device_class"] = evidence.source->device.name();
  json["simulated"] = evidence.basis == Basis::simulated;
  json["basis"] = to_string(evidence.basis);
  json["baseline_arm"] = text_or_null(part.baseline);
  json["treatment_arm"] = part.treatment;
  json["baseline_value"] = value_or_null(finding.baseline_value);
  json["treatment_value"] = value_or_null(finding.treatment_value);
  json["comparison"] = comparison_json(finding, delta, evidence.p_adjusted,
                                       to_string(evidence.verdict), calibration);
  // The value of a single configuration has no null hypothesis to test.
  if (part.baseline.empty()) json["comparison"]["p"] = Json();
  json["why"] = evidence.why;
  return json;
}

const char* relation(bool own) { return own ? "own" : "analogue"; }

Json claimed_json(const ClaimPart& part) {
  const auto effect = [&](double x) { return part.judge == Judge::ratio ? std::expm1(x) : x; };
  const ClaimedFigure& claimed = part.claimed;
  const ClaimedRange range = claimed_range(part, true);
  Json json;
  json["value"] = value_or_null(claimed.value);
  json["low"] = claimed.value ? Json(effect(range.low)) : value_or_null(claimed.at_least);
  json["high"] = claimed.value ? Json(effect(range.high)) : value_or_null(claimed.at_most);
  json["direction"] = claimed.direction;
  return json;
}

Json verdict_json(const PartVerdict& verdict, const ClaimPart& part,
                  const CalibrationState& calibration) {
  return {{"device_class", verdict.device_class},
          {"subject", verdict.subject},
          {"relation", relation(verdict.own)},
          {"simulated", verdict.basis == Basis::simulated},
          {"basis", to_string(verdict.basis)},
          {"verdict", to_string(verdict.verdict)},
          {"why", verdict.why},
          {"would_change", verdict.would_change},
          {"holds_for", text_or_null(verdict.holds_for)},
          {"evidence", array_of(verdict.evidence, evidence_json, part, calibration)}};
}

Json part_json(const PartJudgement& judgement, const CalibrationState& calibration) {
  const ClaimPart& part = *judgement.part;
  Json json;
  json["name"] = part.name;
  json["kind"] = to_string(part.kind);
  json["text"] = part.text;
  json["found"] = text_or_null(part.found);
  json["judge"] = to_string(part.judge);
  json["claimed"] = claimed_json(part);
  json["verdicts"] = array_of(judgement.verdicts, verdict_json, part, calibration);
  return json;
}

Json claim_json(const ClaimJudgement& judgement, const CalibrationState& calibration) {
  const Claim& claim = *judgement.claim;
  Json json;
  json["id"] = claim.id;
  json["title"] = claim.title;
  json["statement"] = claim.statement;
  json["source"] = {{"title", claim.source.title},
                    {"section", claim.source.section},
                    {"date", text_or_null(claim.source.date)},
                    {"url", text_or_null(claim.source.url)}};
  json["subject"] = {{"engine", claim.subject.engine},
                     {"device_class", claim.subject.device_class},
                     {"text", claim.subject.text}};
  json["parts"] = array_of(judgement.parts, part_json, calibration);
  json["verdict"] = to_string(judgement.verdict);
  json["verdict_by_device"] = Json::array();
  for (const DeviceVerdict& device : judgement.by_device)
    json["verdict_by_device"].push_back({{"device_class", device.device_class},
                                         {"relation", relation(device.own)},
                                         {"basis", to_string(device.basis)},
                                         {"verdict", to_string(device.verdict)},
                                         {"why", device.why}});
  json["why"] = judgement.why;
  json["instead"] = claim.instead;
  json["pitfalls"] = claim.pitfalls;
  json["limits"] = claim.limits;
  json["command"] = fmt::format("headroom run claims --filter claim={}", claim.id);
  return json;
}

Json matrix_json(const MatrixEntry& entry, const CalibrationState& calibration) {
  Json json;
  json["experiment"] = entry.experiment->id;
  json["arm"] = entry.arm->name;
  json["cell"] =
      cell_to_json(entry.arm->cell, entry.example != nullptr ? entry.example->samples_per_step : 0);
  json["status"] = entry.status;
  json["reason"] = text_or_null(entry.reason);
  json["samples"] = entry.samples;
  json["values"] = Json::object();
  for (const auto& [name, value] : entry.values) json["values"][name] = number_or_null(value);
  json["intervals"] = Json::object();
  for (const auto& [name, interval] : entry.intervals)
    json["intervals"][name] = interval ? interval_json(*interval) : Json();
  json["baseline_arm"] = text_or_null(entry.baseline_arm);
  json["comparisons"] = Json::object();
  for (const auto& [name, comparison] : entry.comparisons)
    json["comparisons"][name] =
        comparison_json(comparison.finding, comparison.delta, comparison.p_adjusted,
                        to_string(comparison.verdict), calibration);
  return json;
}

Json identical_json(const IdenticalArms& arms, const CalibrationState& calibration) {
  return {{"experiment", arms.experiment->id},
          {"arms", {arms.first, arms.second}},
          {"comparison", comparison_json(arms.finding, std::log1p(kNoisyMargin), std::nullopt,
                                         arms.alarm ? "DIFFERENT" : "NO-DIFFERENCE", calibration)},
          {"alarm", arms.alarm},
          {"why", arms.why}};
}

Json control_json(const Control& control, const CalibrationState& calibration) {
  const Finding& finding = control.finding;
  const std::string_view outcome = to_string(control.detection);
  return {{"experiment", control.experiment->id},
          {"arm", control.arm->name},
          {"device", control.arm->cell.device.to_string()},
          {"injected", control.injected},
          {"metric", control.metric->name},
          {"unit", control.metric->unit},
          {"baseline_value", value_or_null(finding.baseline_value)},
          {"treatment_value", value_or_null(finding.treatment_value)},
          {"comparison", comparison_json(finding, 0, std::nullopt, outcome, calibration)},
          {"outcome", outcome},
          {"why", control.why}};
}

// Blocks left out of noisy comparisons because a sample ran while the machine was slow.
Json exclusions_json(const VerifyInput& input, const SampleTable& table) {
  // The arms of each block, by whether other programs had the cores.
  std::map<std::tuple<bool, std::string, int>, std::set<std::string>> arms;
  for (const Sample& sample : input.samples)
    if (sample.status == SampleStatus::ok && table.disturbed(sample))
      arms[{crowded(sample), sample.experiment, sample.block}].insert(sample.arm);
  Json json = Json::array();
  for (const auto& [place, names] : arms) {
    const auto& [by_others, experiment, block] = place;
    const std::string all = fmt::format("{}", fmt::join(names, " and "));
    const std::string why =
        by_others ? fmt::format("other programs had the cores for over {:.0f} % of the steps of {}",
                                100 * kCrowdedAbove, all)
                  : fmt::format("the machine probe beside {} was below {:.0f} % of this run's best",
                                all, 100 * kDisturbedBelow);
    json.push_back({{"experiment", experiment},
                    {"block", block},
                    {"why", why + "; pairs with it do not count for times"}});
  }
  return json;
}

// Failures that concern Headroom or the machine rather than the cell. Out of memory and not
// supported are results and appear in the matrix.
Json failures_json(const VerifyInput& input) {
  Json json = Json::array();
  for (const Sample& sample : input.samples) {
    const bool failed = sample.status == SampleStatus::crash ||
                        sample.status == SampleStatus::timeout ||
                        sample.status == SampleStatus::invalid;
    if (failed)
      json.push_back({{"experiment", sample.experiment},
                      {"arm", sample.arm},
                      {"block", sample.block},
                      {"status", to_string(sample.status)},
                      {"reason", sample.reason}});
  }
  return json;
}

}  // namespace

Calibration calibration_of(const VerifyInput& input) {
  return count_alarms(
      compare_identical_arms(input.experiments, SampleTable(input.samples, input.additions)));
}

std::string verdicts_json(const VerifyInput& input) {
  const SampleTable table(input.samples, input.additions);
  const auto identical = compare_identical_arms(input.experiments, table);
  Calibration counted = count_alarms(identical);
  counted.aa_comparisons += input.calibration.aa_comparisons;
  counted.false_alarms += input.calibration.false_alarms;
  const CalibrationState calibration = state_of(counted);
  const auto controls = judge_controls(input.experiments, table);
  const Sensitivity sensitivity = sensitivity_of(controls);
  const Reliability reliability = calibration.reliability == Reliability::full
                                      ? sensitivity.reliability
                                      : calibration.reliability;
  const auto claims = judge_claims(input.claims, input.experiments, table, reliability);
  const auto matrix = make_matrix(input.experiments, table, reliability);

  Json json;
  json["schema_version"] = kSchemaVersion;
  json["kind"] = "verdicts";
  json["headline"] = claims.empty() && matrix.empty() && !controls.empty()
                         ? sensitivity.why
                         : headline_of(claims, matrix);
  json["surprises"] = surprises_of(claims);
  std::map<std::string, int> counts;
  for (const ClaimJudgement& claim : claims) ++counts[std::string(to_string(claim.verdict))];
  json["counts"] = Json(counts);
  json["claims"] = array_of(claims, claim_json, calibration);
  json["matrix"] = array_of(matrix, matrix_json, calibration);
  json["calibration"] = {{"status", calibration.status},
                         {"aa_comparisons", counted.aa_comparisons},
                         {"false_alarms", counted.false_alarms},
                         {"why", calibration.why},
                         {"comparisons", array_of(identical, identical_json, calibration)}};
  json["sensitivity"] = {{"status", sensitivity.status}, {"why", sensitivity.why}};
  json["controls"] = array_of(controls, control_json, calibration);
  json["exclusions"] = exclusions_json(input, table);
  json["failures"] = failures_json(input);
  return json.dump(1) + "\n";
}

}  // namespace headroom
