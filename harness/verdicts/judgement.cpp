#include "harness/verdicts/judgement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "harness/device/traits.h"
#include "harness/evidence/wording.h"
#include "harness/plan/scenario.h"
#include "harness/stats/multiplicity.h"
#include "harness/verdicts/combine.h"

namespace headroom {
namespace {

// Whether simulated bytes count as evidence on the claim's own device: the simulated allocators
// follow its engine's own rules.
bool follows_own_rules(const Claim& claim, const ClaimPart& part, const Evidence& evidence) {
  const auto& own = claim.subject.allocators;
  const auto follows = [&](const std::string& arm) {
    const std::string& name = arm_of(evidence.experiment, arm).cell.allocator.innermost().name();
    return std::find(own.begin(), own.end(), name) != own.end();
  };
  return evidence.metric->depends_on == DependsOn::allocator && follows(part.treatment) &&
         (part.baseline.empty() || follows(part.baseline));
}

Basis basis_of(const Spec& device) {
  const DeviceTraits traits = traits_of(device);
  if (traits.virtual_card) return Basis::virtual_card;
  return traits.simulated ? Basis::simulated : Basis::measured;
}

// Whether the subject's own code decided the figure: on a virtual card it sends the requests that
// it would send to a GPU, within the same capacity. This is never true of times.
bool is_of_own_code(const Claim& claim, const Evidence& evidence) {
  return evidence.basis == Basis::virtual_card &&
         traits_of(Spec(claim.subject.device_class)).has_driver &&
         evidence.metric->depends_on == DependsOn::allocator;
}

// Whether the evidence is about the claim's own subject. Headroom on the subject's device class
// counts as that. Another engine's software counts if it is the subject's.
bool is_own(const Claim& claim, const ClaimPart& part, const Evidence& evidence) {
  const bool same_device = evidence.source->device.name() == claim.subject.device_class;
  if (evidence.engine.empty())
    return same_device ||
           (evidence.basis == Basis::simulated && follows_own_rules(claim, part, evidence));
  return claim.subject.engine.starts_with(evidence.engine) &&
         (same_device || evidence.metric->depends_on == DependsOn::software ||
          is_of_own_code(claim, evidence));
}

using Plan = std::set<std::pair<std::string, std::string>>;  // experiment and arm

Plan plan_of(const std::vector<Experiment>& experiments) {
  Plan plan;
  for (const Experiment& experiment : experiments)
    for (const Arm& arm : experiment.arms) plan.emplace(experiment.id, arm.name);
  return plan;
}

Evidence collect(const Claim& claim, const ClaimPart& part, const ClaimExperiment& source,
                 const Experiment& experiment, const Metric& metric, const Plan& plan,
                 const SampleTable& table) {
  Evidence evidence;
  evidence.planned = plan.contains({experiment.id, part.treatment}) &&
                     (part.baseline.empty() || plan.contains({experiment.id, part.baseline}));
  evidence.source = &source;
  evidence.experiment = experiment;
  evidence.metric = &metric;
  evidence.basis = basis_of(source.device);
  evidence.engine = engine_of(arm_of(experiment, part.treatment).cell.scenario);
  evidence.own = is_own(claim, part, evidence);
  const Scale scale = part.judge == Judge::ratio ? Scale::log_ratio : Scale::difference;
  evidence.finding = find(table, experiment, part.baseline, part.treatment, metric, scale);
  return evidence;
}

bool was_not_run(const PartVerdict& verdict) {
  return std::all_of(
      verdict.evidence.begin(), verdict.evidence.end(),
      [](const Evidence& evidence) { return evidence.finding.reason_code == "not_run"; });
}

// "TensorFlow 2.21.0 on a virtual v100-16gb"; the version is that of the samples.
std::string subject_of(const PartVerdict& verdict) {
  const Evidence& first = verdict.evidence.front();
  if (first.engine.empty()) return fmt::format("Headroom on {}", verdict.device_class);
  std::string engine = first.engine;
  std::set<std::string> cards;
  for (const Evidence& evidence : verdict.evidence) {
    if (!evidence.finding.engine.empty()) engine = evidence.finding.engine;
    cards.insert(evidence.source->device.text("card", ""));
  }
  if (verdict.basis != Basis::virtual_card)
    return fmt::format("{} on {}", engine, verdict.device_class);
  return fmt::format("{} on {} {}", engine, cards.size() == 1 ? "a virtual" : "virtual",
                     fmt::join(cards, ", "));
}

// Drops what a filter left out of the run where the run has something else to say: points beside
// planned points, and devices beside planned ones that are as much the claim's own subject.
void drop_what_was_left_out(std::vector<PartVerdict>& verdicts) {
  std::set<bool> planned;  // on the own subject, on others
  for (const PartVerdict& verdict : verdicts)
    if (verdict.planned()) planned.insert(verdict.own);
  std::erase_if(verdicts, [&](const PartVerdict& verdict) {
    return planned.contains(verdict.own) && !verdict.planned();
  });
  for (PartVerdict& verdict : verdicts)
    if (verdict.planned())
      std::erase_if(verdict.evidence, [](const Evidence& evidence) { return !evidence.planned; });
}

PartJudgement collect(const Claim& claim, const ClaimPart& part, const Plan& plan,
                      const SampleTable& table) {
  std::map<std::tuple<std::string, bool, std::string>, PartVerdict> by_device;
  for (const ClaimExperiment& source : claim.experiments) {
    const auto& wanted = part.experiments;
    if (std::find(wanted.begin(), wanted.end(), source.name) == wanted.end()) continue;
    for (const std::string& name : part.metrics) {
      for (const Experiment& experiment : experiments_of(claim, source)) {
        Evidence evidence =
            collect(claim, part, source, experiment, find_metric(name), plan, table);
        PartVerdict& verdict = by_device[{source.device.name(), !evidence.own, evidence.engine}];
        verdict.device_class = source.device.name();
        verdict.own = evidence.own;
        verdict.basis = evidence.basis;
        verdict.evidence.push_back(std::move(evidence));
      }
    }
  }
  PartJudgement judgement{&part, {}};
  for (auto& [device, verdict] : by_device) {
    // Suites may leave out programs of frameworks, because they take long.
    if (verdict.basis == Basis::virtual_card && was_not_run(verdict)) continue;
    judgement.verdicts.push_back(std::move(verdict));
  }
  drop_what_was_left_out(judgement.verdicts);
  for (PartVerdict& verdict : judgement.verdicts) verdict.subject = subject_of(verdict);
  return judgement;
}

// Several parts may use the same comparison, which counts once among the hypotheses.
using ComparisonKey = std::tuple<std::string, std::string, std::string, std::string, Scale>;

void correct_for_many(std::vector<ClaimJudgement>& judgements) {
  std::map<ComparisonKey, std::vector<Evidence*>> comparisons;
  for (ClaimJudgement& judgement : judgements)
    for (PartJudgement& part : judgement.parts)
      for (PartVerdict& verdict : part.verdicts)
        for (Evidence& evidence : verdict.evidence) {
          const Finding& finding = evidence.finding;
          // The value of a single configuration has no null hypothesis to test.
          if (!finding.compared || finding.comparison.exact || part.part->baseline.empty())
            continue;
          comparisons[{evidence.experiment.id, evidence.metric->name, part.part->baseline,
                       part.part->treatment, finding.scale}]
              .push_back(&evidence);
        }
  std::vector<double> p;
  for (const auto& [key, same] : comparisons) p.push_back(same.front()->finding.comparison.p);
  const auto adjusted = holm_adjusted(p);
  const auto levels = holm_levels(p, 0.05);
  std::size_t index = 0;
  for (const auto& [key, same] : comparisons) {
    for (Evidence* evidence : same) {
      compare_at(evidence->finding, levels[index]);
      evidence->p_adjusted = adjusted[index];
    }
    ++index;
  }
}

void judge(const ClaimPart& part, Evidence& evidence, Reliability reliability) {
  Finding& finding = evidence.finding;
  evidence.why = evidence_sentence(part, *evidence.metric, finding, to_string(evidence.basis));
  if (finding.tail && !finding.tail->why.empty())
    evidence.why += fmt::format(" {}", finding.tail->why);
  if (!finding.compared) {
    evidence.verdict = finding.without;
  } else if (!finding.comparison.exact && reliability != Reliability::full) {
    evidence.verdict = ClaimVerdict::inconclusive;
    finding.reason_code = reason_code(reliability);
  } else if (needs_no_baseline(part.judge)) {
    evidence.verdict =
        judge_bound(finding.comparison, {part.claimed.at_least, part.claimed.at_most});
    // A missing interface can neither hold nor fail.
    if (part.kind == PartKind::interface && evidence.verdict == ClaimVerdict::refuted)
      evidence.verdict = ClaimVerdict::ill_posed;
  } else {
    const ClaimedRange claimed = claimed_range(part, finding.comparison.exact);
    evidence.verdict = judge_claim(finding.comparison, claimed.effect);
  }
}

void judge(const ClaimPart& part, PartVerdict& verdict, Reliability reliability) {
  std::vector<ClaimVerdict> words;
  for (Evidence& evidence : verdict.evidence) {
    judge(part, evidence, reliability);
    words.push_back(evidence.verdict);
  }
  verdict.verdict = combine_points(words);
  if (verdict.verdict == ClaimVerdict::conditional) verdict.holds_for = holds_for_text(verdict);
  verdict.why = part_sentence(part, verdict);
  verdict.would_change = would_change_sentence(part, verdict);
  for (const Evidence& evidence : verdict.evidence) {
    if (!evidence.finding.tail || evidence.finding.tail->why.empty()) continue;
    verdict.why += fmt::format(" {}", evidence.finding.tail->why);
    break;  // the evidence has all
  }
  const bool distrusted =
      reliability != Reliability::full &&
      std::any_of(verdict.evidence.begin(), verdict.evidence.end(), [&](const Evidence& evidence) {
        return evidence.finding.reason_code == reason_code(reliability);
      });
  if (!distrusted) return;
  verdict.why += fmt::format(" {}", why_not(reliability));
  if (verdict.verdict == ClaimVerdict::inconclusive)
    verdict.would_change = "A machine on which headroom selftest passes.";
}

}  // namespace

bool PartVerdict::planned() const {
  return std::any_of(evidence.begin(), evidence.end(),
                     [](const Evidence& item) { return item.planned; });
}

std::string_view to_string(Basis basis) {
  switch (basis) {
    case Basis::simulated:
      return "simulated";
    case Basis::virtual_card:
      return "virtual";
    case Basis::measured:
      break;
  }
  return "measured";
}

std::vector<ClaimJudgement> judge_claims(const std::vector<Claim>& claims,
                                         const std::vector<Experiment>& planned,
                                         const SampleTable& table, Reliability reliability) {
  const Plan plan = plan_of(planned);
  std::vector<ClaimJudgement> judgements;
  for (const Claim& claim : claims) {
    ClaimJudgement& judgement = judgements.emplace_back();
    judgement.claim = &claim;
    for (const ClaimPart& part : claim.parts)
      judgement.parts.push_back(collect(claim, part, plan, table));
  }
  correct_for_many(judgements);
  for (ClaimJudgement& judgement : judgements) {
    for (PartJudgement& part : judgement.parts)
      for (PartVerdict& verdict : part.verdicts) judge(*part.part, verdict, reliability);
    combine_parts_of(judgement);
  }
  return judgements;
}

}  // namespace headroom
