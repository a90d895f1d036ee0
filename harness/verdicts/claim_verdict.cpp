// Combines the verdicts of a claim's parts into those of the claim.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "harness/verdicts/combine.h"
#include "harness/verdicts/judgement.h"

namespace headroom {
namespace {

struct PartOnDevice {
  const ClaimPart* part;
  const PartVerdict* verdict;
};

bool is_of_effect(const PartOnDevice& part) {
  return part.part->kind == PartKind::number || part.part->kind == PartKind::direction;
}

// "REFUTED: “a”. REPRODUCED: “b”, “c”.": the verdicts of the effect's parts, without the verdict
// that is stated anyway. Parts that hold come last.
std::string words_of_parts(const std::vector<PartOnDevice>& parts,
                           std::optional<ClaimVerdict> said) {
  std::map<ClaimVerdict, std::vector<std::string>, std::greater<>> names;
  for (const PartOnDevice& part : parts)
    if (is_of_effect(part) && part.verdict->verdict != said)
      names[part.verdict->verdict].push_back(fmt::format("“{}”", part.part->name));
  std::vector<std::string> sentences;
  for (const auto& [word, quoted] : names)
    sentences.push_back(fmt::format("{}: {}.", to_string(word), fmt::join(quoted, ", ")));
  return fmt::format("{}", fmt::join(sentences, " "));
}

// Returns the part whose verdict is that of the whole: a number before a direction before the rest.
const PartOnDevice* deciding_part(const std::vector<PartOnDevice>& parts, ClaimVerdict whole) {
  const PartOnDevice* deciding = nullptr;
  for (const PartKind kind :
       {PartKind::interface, PartKind::cause, PartKind::direction, PartKind::number})
    for (const PartOnDevice& candidate : parts)
      if (candidate.part->kind == kind && candidate.verdict->verdict == whole)
        deciding = &candidate;
  return deciding;
}

// Combines the verdicts of these parts. The reason is the sentence of the deciding part, the
// verdicts of the effect's parts if they differ, and that of the cause if it differs.
DeviceVerdict combine(const std::vector<PartOnDevice>& parts) {
  std::vector<std::pair<PartKind, ClaimVerdict>> words;
  for (const auto& [part, verdict] : parts) words.emplace_back(part->kind, verdict->verdict);
  DeviceVerdict result;
  result.verdict = combine_parts(words);
  const PartOnDevice* deciding = deciding_part(parts, result.verdict);
  const PartVerdict& main = *(deciding == nullptr ? parts.front() : *deciding).verdict;
  result.device_class = main.device_class;
  result.own = main.own;
  result.basis = main.basis;
  const std::string others = words_of_parts(parts, main.verdict);
  if (deciding == nullptr && !others.empty())
    result.why = words_of_parts(parts, std::nullopt);
  else
    result.why = main.why + (others.empty() ? "" : " " + others);
  for (const auto& [part, verdict] : parts)
    if (part->kind == PartKind::cause && verdict->verdict != main.verdict)
      result.why += fmt::format(" The stated cause is {}.", to_string(verdict->verdict));
  return result;
}

// An existing interface decides nothing.
bool says_something(const ClaimPart& part, const PartVerdict& verdict) {
  return part.kind != PartKind::interface || verdict.verdict == ClaimVerdict::ill_posed;
}

// Returns a part's verdict on the claim's own subject. Verdicts that could be tested here come
// first; then come those of a device that was there, those of the subject's own code on a virtual
// card, and simulated ones.
const PartVerdict* own_verdict(const PartJudgement& part) {
  const PartVerdict* best = nullptr;
  const auto rank = [](const PartVerdict& verdict) {
    const int nearness = verdict.basis == Basis::measured       ? 2
                         : verdict.basis == Basis::virtual_card ? 1
                                                                : 0;
    return std::pair(verdict.verdict != ClaimVerdict::not_testable_here, nearness);
  };
  for (const PartVerdict& verdict : part.verdicts)
    if (verdict.own && (best == nullptr || rank(verdict) > rank(*best))) best = &verdict;
  return best;
}

// Removes and returns the parts that a filter left out of the run, as far as a part of the same
// kind was planned. The last part of its kind stays undecided: without it, the verdict on a
// direction would pass for that on a number.
std::vector<PartOnDevice> take_what_was_left_out(std::vector<PartOnDevice>& parts) {
  std::set<PartKind> planned;
  for (const PartOnDevice& part : parts)
    if (part.verdict->planned()) planned.insert(part.part->kind);
  const auto stays = [&](const PartOnDevice& part) {
    return part.verdict->planned() || !planned.contains(part.part->kind);
  };
  const auto left_out = std::stable_partition(parts.begin(), parts.end(), stays);
  std::vector<PartOnDevice> taken(left_out, parts.end());
  parts.erase(left_out, parts.end());
  return taken;
}

void combine_by_device(ClaimJudgement& judgement) {
  std::map<std::pair<bool, std::string>, std::vector<PartOnDevice>> by_device;
  for (const PartJudgement& part : judgement.parts)
    for (const PartVerdict& verdict : part.verdicts)
      if (says_something(*part.part, verdict))
        by_device[{!verdict.own, verdict.device_class}].push_back({part.part, &verdict});
  for (const auto& [device, parts] : by_device) judgement.by_device.push_back(combine(parts));
}

void combine_on_subject(ClaimJudgement& judgement) {
  std::vector<PartOnDevice> own;
  for (const PartJudgement& part : judgement.parts)
    if (const PartVerdict* verdict = own_verdict(part);
        verdict && says_something(*part.part, *verdict))
      own.push_back({part.part, verdict});
  if (own.empty()) {
    judgement.verdict = ClaimVerdict::not_testable_here;
    judgement.why =
        fmt::format("The claim is about {}; no experiment here is.", judgement.claim->subject.text);
    return;
  }
  const std::vector<PartOnDevice> left_out = take_what_was_left_out(own);
  const DeviceVerdict whole = combine(own);
  judgement.verdict = whole.verdict;
  judgement.why = whole.why;
  std::vector<std::string> names;
  for (const PartOnDevice& part : left_out)
    if (is_of_effect(part)) names.push_back(fmt::format("“{}”", part.part->name));
  if (!names.empty())
    judgement.why += fmt::format(" Left out of this run: {}.", fmt::join(names, ", "));
}

}  // namespace

void combine_parts_of(ClaimJudgement& judgement) {
  combine_by_device(judgement);
  combine_on_subject(judgement);
}

}  // namespace headroom
