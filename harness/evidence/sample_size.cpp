#include "harness/evidence/sample_size.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "harness/evidence/block_table.h"
#include "harness/evidence/wording.h"
#include "harness/stats/paired.h"

namespace headroom {
namespace {

constexpr double kAlpha = 0.05;
constexpr const char* kTime = "steady_step_time_ns";

bool belongs_to(const Claim& claim, const ClaimPart& part, const Experiment& experiment) {
  return std::any_of(claim.experiments.begin(), claim.experiments.end(),
                     [&](const ClaimExperiment& source) {
                       const auto& wanted = part.experiments;
                       if (std::find(wanted.begin(), wanted.end(), source.name) == wanted.end())
                         return false;
                       const auto all = experiments_of(claim, source);
                       return std::any_of(all.begin(), all.end(), [&](const Experiment& candidate) {
                         return candidate.id == experiment.id;
                       });
                     });
}

const Claim* claim_of(const Experiment& experiment, const std::vector<Claim>& claims) {
  const auto found = std::find_if(claims.begin(), claims.end(), [&](const Claim& candidate) {
    return candidate.id == experiment.origin;
  });
  return found == claims.end() ? nullptr : &*found;
}

bool has_arm(const Experiment& experiment, const std::string& name) {
  return std::any_of(experiment.arms.begin(), experiment.arms.end(),
                     [&](const Arm& arm) { return arm.name == name; });
}

bool compares(const Claim& claim, const ClaimPart& part, const Experiment& experiment) {
  return has_arm(experiment, part.baseline) && has_arm(experiment, part.treatment) &&
         belongs_to(claim, part, experiment);
}

void add_parts(const Claim& claim, const Experiment& experiment,
               std::vector<PlannedComparison>& comparisons) {
  for (const ClaimPart& part : claim.parts) {
    const bool sized = part.kind != PartKind::control && part.judge == Judge::ratio &&
                       compares(claim, part, experiment);
    if (!sized) continue;
    const double delta = claimed_range(part, false).effect.delta;
    for (const std::string& name : part.metrics)
      comparisons.push_back({.experiment = experiment.id,
                             .baseline = part.baseline,
                             .treatment = part.treatment,
                             .metric = &find_metric(name),
                             .scale = Scale::log_ratio,
                             .delta = delta});
  }
}

// Controls must detect twice the margin (harness/control/slowdown.cpp).
void add_arms(const Experiment& experiment, std::vector<PlannedComparison>& comparisons) {
  const double margin = std::log1p(kNoisyMargin);
  const double delta = experiment.kind == ExperimentKind::control ? 2 * margin : margin;
  for (std::size_t arm = 1; arm < experiment.arms.size(); ++arm)
    comparisons.push_back({.experiment = experiment.id,
                           .baseline = experiment.arms.front().name,
                           .treatment = experiment.arms[arm].name,
                           .metric = &find_metric(kTime),
                           .scale = Scale::log_ratio,
                           .delta = delta});
}

// Fewer pairs than a pilot only show that an experiment runs; they cannot decide anything.
bool is_to_decide(const Experiment& experiment) {
  return !is_exact(experiment) && experiment.blocks >= static_cast<int>(pilot_pairs(kAlpha));
}

// Returns how many pairs the comparison needs, estimated from the dispersion of the pilot's pairs;
// 0 if there are too few of them.
int pairs_wanted(const PlannedComparison& planned, const Experiment& experiment,
                 const SampleTable& table) {
  const Finding finding =
      find(table, experiment, planned.baseline, planned.treatment, *planned.metric, planned.scale);
  const auto pilot = static_cast<std::size_t>(experiment.blocks);
  // A pilot is short if slow pairs could not be replaced. Half of it is still enough to estimate
  // the dispersion.
  if (!finding.compared || finding.comparison.exact || 2 * finding.differences.size() < pilot)
    return 0;
  const auto end = finding.differences.begin() +
                   static_cast<std::ptrdiff_t>(std::min(pilot, finding.differences.size()));
  return static_cast<int>(pairs_needed({finding.differences.begin(), end}, planned.delta, kAlpha));
}

}  // namespace

std::vector<PlannedComparison> planned_comparisons(const std::vector<Experiment>& experiments,
                                                   const std::vector<Claim>& claims) {
  std::vector<PlannedComparison> comparisons;
  for (const Experiment& experiment : experiments) {
    if (is_exact(experiment)) continue;
    if (const Claim* claim = claim_of(experiment, claims))
      add_parts(*claim, experiment, comparisons);
    else
      add_arms(experiment, comparisons);
  }
  return comparisons;
}

std::size_t count_verdicts(const std::vector<Experiment>& experiments,
                           const std::vector<Claim>& claims) {
  // Several parts may use the same comparison, which counts once.
  std::set<std::tuple<std::string, std::string, std::string, std::string>> of_parts;
  std::size_t of_arms = 0;
  for (const Experiment& experiment : experiments) {
    if (!is_to_decide(experiment) || experiment.kind == ExperimentKind::control) continue;
    const Claim* claim = claim_of(experiment, claims);
    if (claim == nullptr) {
      of_arms += experiment.arms.size() - 1;
      continue;
    }
    for (const ClaimPart& part : claim->parts)
      if (compares(*claim, part, experiment))
        for (const std::string& metric : part.metrics)
          of_parts.emplace(experiment.id, metric, part.baseline, part.treatment);
  }
  return of_parts.size() + of_arms;
}

void plan_stages(std::vector<Experiment>& experiments, std::size_t verdicts,
                 std::optional<int> cap) {
  const double alpha = kAlpha / static_cast<double>(std::max<std::size_t>(verdicts, 1));
  const int pilot = static_cast<int>(pilot_pairs(alpha));
  for (Experiment& experiment : experiments) {
    if (!is_to_decide(experiment)) continue;
    const int most = std::max(experiment.blocks, cap.value_or(pilot));
    experiment.blocks = std::clamp(pilot, experiment.blocks, most);
    if (cap) experiment.max_blocks = most;
  }
}

std::vector<SecondStage> second_stages(const std::vector<Experiment>& experiments,
                                       const std::vector<PlannedComparison>& comparisons,
                                       const std::vector<Sample>& samples) {
  const SampleTable table(samples);
  std::vector<SecondStage> stages;
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    const Experiment& experiment = experiments[i];
    if (experiment.max_blocks <= experiment.blocks) continue;
    int wanted = 0;
    for (const PlannedComparison& planned : comparisons)
      if (planned.experiment == experiment.id)
        wanted = std::max(wanted, pairs_wanted(planned, experiment, table));
    const int blocks = std::min(wanted, experiment.max_blocks) - experiment.blocks;
    if (blocks > 0) stages.push_back({.experiment = i, .wanted = wanted, .blocks = blocks});
  }
  return stages;
}

}  // namespace headroom
