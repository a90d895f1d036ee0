// Writes the sentences that say why a part got its verdict and what would change it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/evidence/wording.h"
#include "harness/verdicts/judgement.h"

namespace headroom {
namespace {

std::string place_of(const Evidence& evidence) {
  if (!evidence.source->sweep) return evidence.source->name;
  return fmt::format("{} {}={}", evidence.source->name, evidence.source->sweep->parameter,
                     evidence.experiment.point);
}

std::vector<const Evidence*> compared(const PartVerdict& verdict) {
  std::vector<const Evidence*> result;
  for (const Evidence& evidence : verdict.evidence)
    if (evidence.finding.compared) result.push_back(&evidence);
  return result;
}

std::size_t count(const PartVerdict& verdict, ClaimVerdict word) {
  return static_cast<std::size_t>(
      std::count_if(verdict.evidence.begin(), verdict.evidence.end(),
                    [&](const Evidence& evidence) { return evidence.verdict == word; }));
}

// "measured −99.2 % … −38.0 %"; "" if the evidence has no common unit.
std::string measured_range(const ClaimPart& part, const std::vector<const Evidence*>& evidence) {
  if (evidence.empty() || part.claimed.holds) return "";
  const std::string_view found =
      evidence.front()->basis == Basis::virtual_card ? "on the virtual card" : "measured";
  const Finding& first = evidence.front()->finding;
  double low = first.comparison.theta;
  double high = low;
  for (const Evidence* item : evidence) {
    if (item->finding.scale == Scale::difference &&
        item->metric->unit != evidence.front()->metric->unit)
      return "";
    low = std::min(low, item->finding.comparison.theta);
    high = std::max(high, item->finding.comparison.theta);
  }
  const std::string& unit = evidence.front()->metric->unit;
  const auto text = [&](double theta) {
    return needs_no_baseline(part.judge) ? value_text(theta, unit)
                                         : effect_text(theta, first.scale, unit);
  };
  if (low == high) return fmt::format("; {} {}", found, text(low));
  return fmt::format("; {} {} … {}", found, text(low), text(high));
}

// Says between which neighbouring sweep points the figure crosses the claimed value; "" if nowhere.
std::string crossing(const ClaimPart& part, const PartVerdict& verdict) {
  if (!part.claimed.value) return "";
  const double claimed = *claimed_range(part, true).effect.value;
  for (std::size_t i = 0; i + 1 < verdict.evidence.size(); ++i) {
    const Evidence& a = verdict.evidence[i];
    const Evidence& b = verdict.evidence[i + 1];
    if (a.source != b.source || a.metric != b.metric) continue;
    if (!a.finding.compared || !b.finding.compared) continue;
    if ((a.finding.comparison.theta < claimed) == (b.finding.comparison.theta < claimed)) continue;
    return fmt::format("; {} passes the claimed size between {} and {}", a.metric->text,
                       place_of(a), place_of(b));
  }
  return "";
}

std::string without_result(const PartVerdict& verdict) {
  const auto missing = std::find_if(verdict.evidence.begin(), verdict.evidence.end(),
                                    [](const Evidence& e) { return !e.finding.compared; });
  if (missing == verdict.evidence.end()) return "";
  const auto number = verdict.evidence.size() - compared(verdict).size();
  return fmt::format("; {} without a result, such as {} ({})", number, place_of(*missing),
                     missing->finding.why_not);
}

constexpr std::size_t kManyPairs = 1000;

// Says how many pairs would decide the comparison that is furthest from a decision; "" if none is
// noisy.
std::string more_pairs(const ClaimPart& part, const PartVerdict& verdict) {
  std::size_t needed = 0;
  const Evidence* hardest = nullptr;
  for (const Evidence* evidence : compared(verdict)) {
    const Finding& finding = evidence->finding;
    if (finding.comparison.exact) continue;
    const std::size_t least = pilot_pairs(finding.alpha);
    if (finding.comparison.pairs < least)
      return fmt::format("At least {} pairs instead of {}.", least, finding.comparison.pairs);
    const double delta = claimed_range(part, false).effect.delta;
    const std::size_t pairs = pairs_needed(finding.differences, delta, finding.alpha);
    if (hardest != nullptr && pairs <= needed) continue;
    needed = pairs;
    hardest = evidence;
  }
  if (hardest == nullptr) return "";
  const Comparison& comparison = hardest->finding.comparison;
  const std::size_t pairs = std::max(needed, comparison.pairs + 1);
  const std::string number = needed > kManyPairs ? fmt::format("More than {}", kManyPairs)
                                                 : fmt::format("About {}", pairs);
  const std::string how = needed > kManyPairs ? "" : fmt::format(" (--max-pairs {})", pairs);
  return fmt::format(
      "{} pairs instead of {}{}, which could have seen an effect of {}, or a quieter machine.",
      number, comparison.pairs, how,
      effect_text(comparison.mde, hardest->finding.scale, hardest->metric->unit));
}

std::vector<std::string> metrics_of(const PartVerdict& verdict) {
  std::vector<std::string> names;
  for (const Evidence& evidence : verdict.evidence)
    if (std::find(names.begin(), names.end(), evidence.metric->name) == names.end())
      names.push_back(evidence.metric->name);
  return names;
}

// Names the places where one metric is as claimed: "v100 batch 2…4, 16; a100 everywhere".
std::string holding_places(const PartVerdict& verdict, const std::string& metric) {
  std::vector<std::string> places;
  const ClaimExperiment* source = nullptr;
  for (const Evidence& any : verdict.evidence) {
    if (any.source == source) continue;
    source = any.source;
    std::vector<std::string> values;
    std::vector<bool> holds;
    for (const Evidence& evidence : verdict.evidence) {
      if (evidence.source != source || evidence.metric->name != metric) continue;
      values.push_back(evidence.experiment.point);
      holds.push_back(evidence.verdict == ClaimVerdict::reproduced);
    }
    if (std::find(holds.begin(), holds.end(), true) == holds.end()) continue;
    const bool everywhere = std::find(holds.begin(), holds.end(), false) == holds.end();
    if (!source->sweep)
      places.push_back(source->name);
    else if (everywhere)
      places.push_back(fmt::format("{} every {}", source->name, source->sweep->parameter));
    else
      places.push_back(fmt::format("{} {} {}", source->name, source->sweep->parameter,
                                   range_text(values, holds)));
  }
  return fmt::format("{}", fmt::join(places, ", "));
}

std::string accepted(const ClaimPart& part, const PartVerdict& verdict) {
  const Evidence& first = verdict.evidence.front();
  return claimed_text(part, *first.metric, first.finding.comparison.exact);
}

}  // namespace

// "metric: experiment range, experiment range; metric: …". Metrics that hold at the same points are
// named together.
std::string holds_for_text(const PartVerdict& verdict) {
  const std::vector<std::string> all_metrics = metrics_of(verdict);
  if (all_metrics.size() == 1) return holding_places(verdict, all_metrics.front());
  // Places, and the metrics that hold there.
  std::vector<std::pair<std::string, std::string>> places;
  for (const std::string& metric : all_metrics) {
    const std::string where = holding_places(verdict, metric);
    if (where.empty()) continue;
    const auto same = std::find_if(places.begin(), places.end(),
                                   [&](const auto& place) { return place.first == where; });
    if (same == places.end())
      places.emplace_back(where, metric);
    else
      same->second += ", " + metric;
  }
  std::vector<std::string> texts;
  for (const auto& [where, metrics] : places)
    texts.push_back(fmt::format("{}: {}", metrics, where));
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string part_sentence(const ClaimPart& part, const PartVerdict& verdict) {
  if (verdict.evidence.size() == 1) return verdict.evidence.front().why;
  const std::size_t holds = count(verdict, ClaimVerdict::reproduced);
  const auto with_result = compared(verdict);
  if (with_result.empty()) {
    const std::string& reason = verdict.evidence.front().finding.why_not;
    return fmt::format("No comparison has a result: {}.", reason);
  }
  std::string text = holds == with_result.size()
                         ? fmt::format("Holds at all {} points", with_result.size())
                         : fmt::format("Holds at {} of {} points", holds, with_result.size());
  if (!verdict.holds_for.empty()) text += fmt::format(" ({})", verdict.holds_for);
  const std::size_t open = count(verdict, ClaimVerdict::inconclusive);
  const std::size_t size_open = count(verdict, ClaimVerdict::direction_only);
  if (open > 0) text += fmt::format(", {} undecided", open);
  if (size_open > 0) text += fmt::format(", {} undecided in size", size_open);
  text += measured_range(part, with_result);
  text += fmt::format("; claimed {}", accepted(part, verdict));
  if (holds == 0) text += crossing(part, verdict);
  return text + without_result(verdict) + ".";
}

std::string would_change_sentence(const ClaimPart& part, const PartVerdict& verdict) {
  const auto with_result = compared(verdict);
  const bool exact = !with_result.empty() && with_result.front()->finding.comparison.exact;
  switch (verdict.verdict) {
    case ClaimVerdict::reproduced:
      return exact ? "Another workload size, card or set of rules: here the figures are exact."
                   : fmt::format("A figure clearly outside the claimed range: {}.",
                                 accepted(part, verdict));
    case ClaimVerdict::weaker:
    case ClaimVerdict::stronger:
    case ClaimVerdict::refuted:
      return fmt::format("A figure as claimed: {}.", accepted(part, verdict));
    case ClaimVerdict::conditional:
      return "Conditions stated in the source: inside the range it would be REPRODUCED, outside "
             "it not.";
    case ClaimVerdict::direction_only:
    case ClaimVerdict::inconclusive: {
      const std::string pairs = more_pairs(part, verdict);
      if (!pairs.empty()) return pairs;
      return with_result.empty() ? "A run in which both variants get a result."
                                 : "Conditions stated in the source: the size depends on them.";
    }
    case ClaimVerdict::not_testable_here:
      return fmt::format("A machine that can run {}.",
                         verdict.evidence.front().source->device.to_string());
    case ClaimVerdict::ill_posed:
      return "A version of the software that has what the claim names.";
    case ClaimVerdict::invalid:
      break;
  }
  return "A run in which the strategy does what its name says.";
}

}  // namespace headroom
