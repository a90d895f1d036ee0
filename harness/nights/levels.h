// Noisy figures over the nights of one machine in one environment: has the level of one shifted?
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/nights/acceptance.h"
#include "harness/nights/night.h"

namespace headroom {

// At most so many nights are looked at, the judged one included.
inline constexpr std::size_t kNightsLookedAt = 50;

struct Shift {
  const NightCell* cell = nullptr;  // of the judged night
  const Metric* metric = nullptr;
  double before = 0;                // the best accepted level
  double after = 0;                 // the last one
  double p = 1;                     // corrected for the places tried, and for the other cells
  std::string first_night = {};     // night_id of the first night of the last level
  std::string previous_night = {};  // of the one before
  bool worse = false;               // beyond the margin for noisy figures; otherwise better
};

// The shifts that stay when as many series as there are have been tested (Benjamini and Hochberg,
// q = .05) and that pass the margin. `nights` ends with the judged one; those before a change of
// environment, or of before the acceptance of a cell, do not count.
std::vector<Shift> shifts_of(const std::vector<Night>& nights, const AcceptedState& state);

}  // namespace headroom
