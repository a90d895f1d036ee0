#include "harness/verdicts/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/evidence/wording.h"
#include "harness/verdicts/combine.h"

namespace headroom {
namespace {

const char* phrase(ClaimVerdict verdict) {
  switch (verdict) {
    case ClaimVerdict::reproduced:
      return "is reproduced";
    case ClaimVerdict::weaker:
      return "is weaker than claimed";
    case ClaimVerdict::stronger:
      return "is stronger than claimed";
    case ClaimVerdict::direction_only:
      return "holds in direction, not in size";
    case ClaimVerdict::refuted:
      return "is refuted";
    case ClaimVerdict::conditional:
      return "holds only under conditions it does not name";
    case ClaimVerdict::not_testable_here:
      return "cannot be tested here";
    case ClaimVerdict::ill_posed:
      return "is ill-posed";
    case ClaimVerdict::invalid:
      return "has no valid measurement";
    case ClaimVerdict::inconclusive:
      break;
  }
  return "stays open";
}

std::string claim_phrase(const ClaimJudgement& judgement) {
  std::string text = fmt::format("{} {}", judgement.claim->id, phrase(judgement.verdict));
  if (judgement.verdict != ClaimVerdict::not_testable_here) return text;
  for (const DeviceVerdict& device : judgement.by_device)
    if (!device.own && is_decided(device.verdict))
      text += fmt::format("; its analogue on {} {}", device.device_class, phrase(device.verdict));
  return text;
}

struct Surprise {
  double size = 0;
  std::string text;
};

// A unitless distance, so that all surprises can be sorted together.
double log_distance(double a, double b) { return a > 0 && b > 0 ? std::abs(std::log(a / b)) : 1; }

// Distance of the figure from the claim; 0 if it agrees.
double disagreement(const ClaimPart& part, const Evidence& evidence) {
  const double theta = evidence.finding.comparison.theta;
  if (needs_no_baseline(part.judge)) {
    if (part.claimed.at_least && theta < *part.claimed.at_least)
      return log_distance(theta, *part.claimed.at_least);
    if (part.claimed.at_most && theta > *part.claimed.at_most)
      return log_distance(theta, *part.claimed.at_most);
    return 0;
  }
  // Differences in bytes would outrank all others, so these are compared as ratios, too.
  if (part.judge == Judge::difference)
    return log_distance(
        evidence.finding.treatment_value.value_or(0),
        evidence.finding.baseline_value.value_or(0) + part.claimed.value.value_or(0));
  if (part.claimed.value) {
    const ClaimedRange claimed = claimed_range(part, evidence.finding.comparison.exact);
    return std::abs(theta - *claimed.effect.value);
  }
  return evidence.verdict == ClaimVerdict::refuted ? std::abs(theta) : 0;
}

std::optional<Surprise> largest_of(const ClaimJudgement& judgement, const PartJudgement& part) {
  std::optional<Surprise> largest;
  if (part.part->kind == PartKind::control) return largest;
  for (const PartVerdict& verdict : part.verdicts) {
    for (const Evidence& evidence : verdict.evidence) {
      // Only decided comparisons can be surprising.
      if (!is_decided(evidence.verdict) || evidence.verdict == ClaimVerdict::reproduced) continue;
      const double size = disagreement(*part.part, evidence);
      if (largest && size <= largest->size) continue;
      const Finding& finding = evidence.finding;
      largest = Surprise{
          size,
          fmt::format(
              "{}, {}: claimed {}, measured {}: {} with {} ({}{}{}).", judgement.claim->id,
              part.part->name, claimed_text(*part.part, *evidence.metric, finding.comparison.exact),
              finding.baseline_value
                  ? effect_text(finding.comparison.theta, finding.scale, evidence.metric->unit)
                  : value_text(*finding.treatment_value, evidence.metric->unit),
              evidence.metric->text, part.part->treatment, evidence.experiment.id,
              evidence.basis == Basis::measured ? ""
                                                : fmt::format(", {}", to_string(evidence.basis)),
              evidence.own ? "" : ", an analogue")};
    }
  }
  return largest;
}

}  // namespace

namespace {

constexpr std::size_t kFewClaims = 4;

std::string claim_by_claim(const std::vector<ClaimJudgement>& claims) {
  std::vector<std::string> phrases;
  for (const ClaimJudgement& judgement : claims) phrases.push_back(claim_phrase(judgement));
  return fmt::format("{}.", fmt::join(phrases, "; "));
}

// Returns "Of 28 claims: 3 REPRODUCED, …", with the verdicts in the order of their enumeration.
std::string count_words(const std::vector<ClaimJudgement>& claims) {
  std::map<ClaimVerdict, std::size_t> counts;
  for (const ClaimJudgement& judgement : claims) ++counts[judgement.verdict];
  std::vector<std::string> phrases;
  for (const auto& [verdict, count] : counts)
    phrases.push_back(fmt::format("{} {}", count, to_string(verdict)));
  return fmt::format("Of {} claims: {}.", claims.size(), fmt::join(phrases, ", "));
}

}  // namespace

std::string headline_of(const std::vector<ClaimJudgement>& claims,
                        const std::vector<MatrixEntry>& matrix) {
  if (!claims.empty()) {
    return claims.size() > kFewClaims ? count_words(claims) : claim_by_claim(claims);
  }
  std::size_t results = 0;
  std::size_t comparisons = 0;
  std::size_t different = 0;
  std::size_t undecided = 0;
  for (const MatrixEntry& entry : matrix) {
    if (entry.status == "ok") ++results;
    for (const auto& [name, comparison] : entry.comparisons) {
      const Finding& finding = comparison.finding;
      if (!finding.compared && finding.without != ClaimVerdict::inconclusive) continue;
      ++comparisons;
      if (!finding.compared || comparison.verdict == ChangeVerdict::inconclusive) ++undecided;
      const bool beyond =
          comparison.verdict == ChangeVerdict::worse || comparison.verdict == ChangeVerdict::better;
      if (beyond) ++different;
    }
  }
  if (matrix.empty()) return "Nothing was measured.";
  return fmt::format(
      "{} of {} configurations have a result; {} of {} comparisons differ beyond the margin{}.",
      results, matrix.size(), different, comparisons,
      undecided > 0 ? fmt::format(", {} undecided", undecided) : "");
}

std::vector<std::string> surprises_of(const std::vector<ClaimJudgement>& claims,
                                      std::size_t limit) {
  std::vector<Surprise> surprises;
  for (const ClaimJudgement& judgement : claims)
    for (const PartJudgement& part : judgement.parts)
      if (auto surprise = largest_of(judgement, part)) surprises.push_back(std::move(*surprise));
  std::stable_sort(surprises.begin(), surprises.end(),
                   [](const Surprise& a, const Surprise& b) { return a.size > b.size; });
  std::vector<std::string> texts;
  for (const Surprise& surprise : surprises)
    if (texts.size() < limit) texts.push_back(surprise.text);
  return texts;
}

}  // namespace headroom
