#include "harness/planning/partial_plan.h"

#include <algorithm>
#include <limits>

namespace headroom {
namespace {

constexpr PlanIndex kNoBuffer = std::numeric_limits<PlanIndex>::max();
constexpr Bytes kNowhere = std::numeric_limits<Bytes>::max();

bool are_twins(const PlanInstance& instance, PlanIndex a, PlanIndex b) {
  return instance.sections_of[a] == instance.sections_of[b] &&
         instance.size[a] == instance.size[b] && instance.alignment[a] == instance.alignment[b] &&
         !instance.fixed[a] && !instance.fixed[b];
}

}  // namespace

PartialPlan::PartialPlan(const PlanInstance& instance, Bytes capacity,
                         std::vector<std::uint64_t>& failures)
    : instance_(instance),
      capacity_(capacity),
      failures_(failures),
      twin_(instance.buffers(), kNoBuffer),
      fixed_neighbours_(instance.buffers()),
      offset_(instance.buffers()),
      bound_(instance.buffers()),
      placed_(instance.buffers()),
      lifted_(instance.buffers()),
      unplaced_bytes_(instance.sections()),
      lowest_top_(instance.sections()),
      ways_(instance.sections()),
      will_be_looked_at_(instance.sections()) {
  for (PlanIndex i = 0; i < instance.buffers(); ++i) {
    offset_[i] = bound_[i] = instance.fixed[i].value_or(0);
    for (const PlanIndex j : instance.neighbours[i])
      if (instance.fixed[j]) fixed_neighbours_[i].push_back(j);
    for (const PlanIndex j : instance.neighbours[i])
      if (j < i && (twin_[i] == kNoBuffer || j > twin_[i]) && are_twins(instance, i, j))
        twin_[i] = j;
    for (const PlanIndex s : instance.sections_of[i]) unplaced_bytes_[s] += instance.size[i];
    look_again(i);
  }
}

bool PartialPlan::start() {
  if (std::any_of(unplaced_bytes_.begin(), unplaced_bytes_.end(),
                  [&](Bytes bytes) { return bytes > capacity_; }))
    return false;
  for (PlanIndex i = 0; i < instance_.buffers(); ++i)
    if (!raise_beyond_fixed(i)) return false;
  return conclude();
}

bool PartialPlan::place(PlanIndex buffer) {
  const Bytes top = offset_[buffer] + instance_.size[buffer];
  trail_.push_back({Kind::place, buffer, 0});
  placed_[buffer] = true;
  for (const PlanIndex s : instance_.sections_of[buffer])
    unplaced_bytes_[s] -= instance_.size[buffer];
  look_again(buffer);
  for (const PlanIndex other : instance_.neighbours[buffer]) {
    if (placed_[other] || offset_[other] >= top) continue;
    trail_.push_back({Kind::offset, other, offset_[other]});
    offset_[other] = align_up(top, instance_.alignment[other]);
    if (lifted_[other]) {  // it may now rest on `buffer`
      trail_.push_back({Kind::lift, other, 1});
      lifted_[other] = false;
    }
    if (!raise(other, offset_[other])) return false;
  }
  return conclude();
}

bool PartialPlan::lift(PlanIndex buffer) {
  trail_.push_back({Kind::lift, buffer, 0});
  lifted_[buffer] = true;
  return conclude();
}

void PartialPlan::take_back(std::size_t mark) {
  while (trail_.size() > mark) {
    const auto [kind, buffer, before] = trail_.back();
    trail_.pop_back();
    switch (kind) {
      case Kind::place:
        placed_[buffer] = false;
        for (const PlanIndex s : instance_.sections_of[buffer])
          unplaced_bytes_[s] += instance_.size[buffer];
        look_again(buffer);
        break;
      case Kind::offset:
        offset_[buffer] = before;
        break;
      case Kind::bound:
        bound_[buffer] = before;
        look_again(buffer);
        break;
      case Kind::lift:
        lifted_[buffer] = before != 0;
        break;
    }
  }
}

bool PartialPlan::can_be_next(PlanIndex buffer) const {
  if (placed_[buffer] || lifted_[buffer] || bound_[buffer] != offset_[buffer]) return false;
  // The two are interchangeable: the twin goes first.
  if (twin_[buffer] != kNoBuffer && !placed_[twin_[buffer]]) return false;
  // If an unplaced buffer still fitted below this one, that one would be placed first.
  for (const PlanIndex s : instance_.sections_of[buffer])
    if (lowest_top_[s] <= offset_[buffer]) return false;
  return true;
}

PlanIndex PartialPlan::fewest_ways(PlanIndex buffer) const {
  PlanIndex fewest = kNoBuffer;
  for (const PlanIndex s : instance_.sections_of[buffer]) fewest = std::min(fewest, ways_[s]);
  return fewest;
}

bool PartialPlan::raise(PlanIndex buffer, Bytes bound) {
  if (bound_[buffer] >= bound) return true;
  trail_.push_back({Kind::bound, buffer, bound_[buffer]});
  bound_[buffer] = align_up(bound, instance_.alignment[buffer]);
  look_again(buffer);
  return raise_beyond_fixed(buffer);
}

// Raises the bound above every fixed neighbour below which the buffer has no room.
bool PartialPlan::raise_beyond_fixed(PlanIndex buffer) {
  const Bytes size = instance_.size[buffer];
  if (instance_.fixed[buffer])
    return bound_[buffer] == *instance_.fixed[buffer] && bound_[buffer] + size <= capacity_;
  for (const PlanIndex j : fixed_neighbours_[buffer]) {
    const Bytes top = *instance_.fixed[j] + instance_.size[j];
    if (bound_[buffer] < top && bound_[buffer] + size > *instance_.fixed[j])
      return raise(buffer, top);
  }
  if (bound_[buffer] + size <= capacity_) return true;
  ++failures_[buffer];
  return false;
}

void PartialPlan::look_again(PlanIndex buffer) {
  for (const PlanIndex s : instance_.sections_of[buffer]) {
    if (will_be_looked_at_[s]) continue;
    will_be_looked_at_[s] = true;
    to_look_at_.push_back(s);
  }
}

// Draws conclusions until none is left.
bool PartialPlan::conclude() {
  do {
    while (!to_look_at_.empty()) {
      const PlanIndex section = to_look_at_.back();
      to_look_at_.pop_back();
      will_be_looked_at_[section] = false;
      if (!conclude_in(section)) return false;
    }
    for (PlanIndex i = 0; i < instance_.buffers(); ++i)
      if (lifted_[i] && !placed_[i] && !conclude_about_lifted(i)) return false;
  } while (!to_look_at_.empty());
  return true;
}

bool PartialPlan::conclude_in(PlanIndex section) {
  lowest_top_[section] = kNowhere;
  ways_[section] = kNoBuffer;
  if (unplaced_bytes_[section] == 0) return true;
  // A buffer that starts above this leaves too little room for all others to be above it.
  const Bytes highest_first = capacity_ - unplaced_bytes_[section];
  Bytes lowest = kNowhere;
  Bytes lowest_top = kNowhere;
  PlanIndex can_be_first = 0;
  PlanIndex cannot = 0;
  for (const PlanIndex i : instance_.members[section]) {
    if (placed_[i]) continue;
    if (bound_[i] > highest_first) {
      ++cannot;
      continue;
    }
    ++can_be_first;
    lowest = std::min(lowest, bound_[i]);
    lowest_top = std::min(lowest_top, bound_[i] + instance_.size[i]);
  }
  if (can_be_first == 0) {
    for (const PlanIndex i : instance_.members[section])
      if (!placed_[i]) ++failures_[i];
    return false;
  }
  lowest_top_[section] = lowest_top;
  ways_[section] = can_be_first + (lowest < highest_first ? 1 : 0);
  if (cannot == 0) return true;
  for (const PlanIndex i : instance_.members[section])
    if (!placed_[i] && bound_[i] > highest_first && !raise(i, lowest_top)) return false;
  return true;
}

bool PartialPlan::conclude_about_lifted(PlanIndex buffer) {
  Bytes lowest_top = kNowhere;
  for (const PlanIndex j : instance_.neighbours[buffer])
    if (!placed_[j]) lowest_top = std::min(lowest_top, bound_[j] + instance_.size[j]);
  if (lowest_top == kNowhere) return false;
  return raise(buffer, std::max(lowest_top, offset_[buffer] + 1));
}

}  // namespace headroom
