#include "harness/verdicts/combine.h"

#include <algorithm>

namespace headroom {
namespace {

bool has(const std::vector<ClaimVerdict>& words, ClaimVerdict word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool shows_direction(ClaimVerdict verdict) {
  return is_decided(verdict) && verdict != ClaimVerdict::refuted;
}

std::vector<ClaimVerdict> of_kind(const std::vector<std::pair<PartKind, ClaimVerdict>>& parts,
                                  PartKind kind) {
  std::vector<ClaimVerdict> words;
  for (const auto& [part_kind, word] : parts)
    if (part_kind == kind) words.push_back(word);
  return words;
}

ClaimVerdict combine_effect(const std::vector<ClaimVerdict>& numbers,
                            const std::vector<ClaimVerdict>& directions) {
  if (numbers.empty()) return combine_points(directions);
  const ClaimVerdict number = combine_points(numbers);
  if (directions.empty()) return number;
  const ClaimVerdict direction = combine_points(directions);
  if (!is_decided(number)) {
    if (direction == ClaimVerdict::refuted) return ClaimVerdict::refuted;
    if (direction == ClaimVerdict::reproduced) return ClaimVerdict::direction_only;
    return number;
  }
  const bool contradicted = is_decided(direction) && direction != ClaimVerdict::reproduced;
  if (number == ClaimVerdict::reproduced && contradicted) return ClaimVerdict::conditional;
  return number;
}

}  // namespace

bool is_decided(ClaimVerdict verdict) {
  switch (verdict) {
    case ClaimVerdict::inconclusive:
    case ClaimVerdict::not_testable_here:
    case ClaimVerdict::ill_posed:
    case ClaimVerdict::invalid:
      return false;
    default:
      return true;
  }
}

ClaimVerdict combine_points(const std::vector<ClaimVerdict>& points) {
  std::vector<ClaimVerdict> decided;
  for (const ClaimVerdict point : points)
    if (is_decided(point)) decided.push_back(point);
  const bool open = has(points, ClaimVerdict::inconclusive) || has(points, ClaimVerdict::invalid);
  if (decided.empty()) {
    for (const auto word :
         {ClaimVerdict::invalid, ClaimVerdict::inconclusive, ClaimVerdict::ill_posed})
      if (has(points, word)) return word;
    return ClaimVerdict::not_testable_here;
  }
  const bool one_word = std::all_of(decided.begin(), decided.end(),
                                    [&](ClaimVerdict word) { return word == decided.front(); });
  if (one_word && !open) return decided.front();
  const bool holds_here = has(decided, ClaimVerdict::reproduced);
  const bool fails_there = has(decided, ClaimVerdict::refuted) ||
                           has(decided, ClaimVerdict::weaker) ||
                           has(decided, ClaimVerdict::stronger);
  if (has(decided, ClaimVerdict::conditional) || (holds_here && fails_there))
    return ClaimVerdict::conditional;
  if (open) return ClaimVerdict::inconclusive;
  if (std::all_of(decided.begin(), decided.end(), shows_direction))
    return ClaimVerdict::direction_only;
  return has(decided, ClaimVerdict::direction_only) ? ClaimVerdict::inconclusive
                                                    : ClaimVerdict::refuted;
}

ClaimVerdict combine_parts(const std::vector<std::pair<PartKind, ClaimVerdict>>& parts) {
  const auto numbers = of_kind(parts, PartKind::number);
  const auto directions = of_kind(parts, PartKind::direction);
  const auto causes = of_kind(parts, PartKind::cause);
  const auto interfaces = of_kind(parts, PartKind::interface);
  if (has(interfaces, ClaimVerdict::ill_posed)) return ClaimVerdict::ill_posed;
  if (numbers.empty() && directions.empty()) return combine_points(causes);
  const ClaimVerdict effect = combine_effect(numbers, directions);
  const bool cause_refuted = !causes.empty() && combine_points(causes) == ClaimVerdict::refuted;
  if (effect == ClaimVerdict::reproduced && cause_refuted) return ClaimVerdict::conditional;
  return effect;
}

}  // namespace headroom
