#include "harness/verdicts/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/plan/scenario.h"
#include "harness/stats/median.h"
#include "harness/stats/multiplicity.h"

namespace headroom {
namespace {

constexpr double kFalseDiscoveryRate = 0.05;
constexpr std::array kCompared = {"steady_step_time_ns", "reserved_bytes.overall_peak"};

std::string status_word(const ArmState& state) {
  switch (state.result) {
    case ResultState::present:
      return "ok";
    case ResultState::unavailable:
      return "unsupported";
    case ResultState::out_of_memory:
      return "oom";
    case ResultState::not_engaged:
      return "invalid";
    case ResultState::not_run:
      return "not_run";
    case ResultState::failed:
      break;
  }
  return "failed";
}

// Interval of non-negative values, on the log scale if none is 0.
std::optional<Interval> interval_of(const std::vector<double>& values) {
  const bool positive =
      std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
  std::vector<double> scaled = values;
  if (positive)
    for (double& value : scaled) value = std::log(value);
  Interval interval = signed_rank_interval(scaled, 0.95);
  if (std::isinf(interval.low)) return std::nullopt;
  if (positive) interval = {std::exp(interval.low), std::exp(interval.high)};
  return interval;
}

void fill_values(MatrixEntry& entry, const SampleTable& table) {
  for (const Metric& metric : metrics()) {
    std::vector<double> values;
    for (const auto& [block, sample] : table.of(entry.experiment->id, entry.arm->name)) {
      if (sample->status != SampleStatus::ok) continue;
      if (const auto value = metric.value(*sample)) values.push_back(*value);
    }
    if (values.empty()) continue;
    entry.values[metric.name] = median_of(values);
    const bool one_value = std::all_of(values.begin(), values.end(),
                                       [&](double value) { return value == values.front(); });
    if (one_value && class_on(metric, entry.arm->cell.device) == Metric::Class::exact)
      entry.intervals[metric.name] = Interval{values.front(), values.front()};
    else
      entry.intervals[metric.name] = interval_of(values);
  }
}

MatrixEntry make_entry(const Experiment& experiment, const Arm& arm, const SampleTable& table) {
  MatrixEntry entry;
  entry.experiment = &experiment;
  entry.arm = &arm;
  const auto& samples = table.of(experiment.id, arm.name);
  const ArmState state = arm_state(table, experiment, arm);
  if (!samples.empty()) entry.example = samples.begin()->second;
  entry.status = status_word(state);
  entry.reason = state.why;
  if (state.result == ResultState::present && state.ok < state.samples)
    entry.reason =
        fmt::format("{} of {} samples have no result", state.samples - state.ok, state.samples);
  entry.samples = state.samples;
  if (state.result == ResultState::present) fill_values(entry, table);
  const Arm& baseline = experiment.arms.front();
  if (&arm == &baseline) return entry;
  entry.baseline_arm = baseline.name;
  for (const char* name : kCompared) {
    const Metric& metric = find_metric(name);
    MatrixComparison comparison;
    comparison.finding = find(table, experiment, baseline.name, arm.name, metric, Scale::log_ratio);
    const bool exact = comparison.finding.comparison.exact;
    comparison.delta = std::log1p(exact ? kExactMargin : kNoisyMargin);
    entry.comparisons[name] = std::move(comparison);
  }
  return entry;
}

// Judges comparisons with judge_change(). Larger is worse for every metric compared here.
void judge(std::vector<MatrixComparison*>& comparisons, Reliability reliability) {
  std::vector<double> p;
  std::vector<MatrixComparison*> noisy;
  for (MatrixComparison* comparison : comparisons) {
    if (!comparison->finding.compared) continue;
    comparison->verdict = judge_change(comparison->finding.comparison, comparison->delta);
    if (comparison->finding.comparison.exact) continue;
    noisy.push_back(comparison);
    p.push_back(comparison->finding.comparison.p);
  }
  const auto adjusted = benjamini_hochberg_adjusted(p);
  for (std::size_t i = 0; i < noisy.size(); ++i) {
    MatrixComparison& comparison = *noisy[i];
    comparison.p_adjusted = adjusted[i];
    const Interval& interval = comparison.finding.comparison.ci95;
    const bool claims_a_difference = interval.low > 0 || interval.high < 0;
    if (reliability != Reliability::full) {
      comparison.verdict = ChangeVerdict::inconclusive;
      comparison.finding.reason_code = reason_code(reliability);
    } else if (claims_a_difference && adjusted[i] > kFalseDiscoveryRate) {
      comparison.verdict = ChangeVerdict::inconclusive;
      comparison.finding.reason_code = "one_of_many";
    }
  }
}

}  // namespace

std::vector<MatrixEntry> make_matrix(const std::vector<Experiment>& experiments,
                                     const SampleTable& table, Reliability reliability) {
  std::vector<MatrixEntry> matrix;
  for (const Experiment& experiment : experiments) {
    if (experiment.kind == ExperimentKind::control) continue;
    for (const Arm& arm : experiment.arms)
      if (trains(arm.cell)) matrix.push_back(make_entry(experiment, arm, table));
  }
  std::vector<MatrixComparison*> comparisons;
  for (MatrixEntry& entry : matrix)
    for (auto& [name, comparison] : entry.comparisons) comparisons.push_back(&comparison);
  judge(comparisons, reliability);
  return matrix;
}

}  // namespace headroom
