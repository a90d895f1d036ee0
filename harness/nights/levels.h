// Detects shifts in the levels of noisy figures over the nights of one machine in one environment.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/nights/acceptance.h"
#include "harness/nights/night.h"

namespace headroom {

// The largest number of nights that are examined, the judged one included.
inline constexpr std::size_t kNightsLookedAt = 50;

struct Shift {
  const NightCell* cell = nullptr;  // of the judged night
  const Metric* metric = nullptr;
  double before = 0;                // the best accepted level
  double after = 0;                 // the last one
  double p = 1;                     // corrected for multiple change points and cells
  std::string first_night = {};     // night_id of the first night after the largest step
  std::string previous_night = {};  // night_id of the night before it
  bool worse = false;               // beyond the margin for noisy figures; otherwise better
};

// Returns the shifts that remain significant after correction for the number of series tested
// (Benjamini and Hochberg, q = .05) and that exceed the margin. `nights` ends with the judged one;
// nights before a change of environment, or before a cell's level was accepted, do not count.
std::vector<Shift> shifts_of(const std::vector<Night>& nights, const AcceptedState& state);

}  // namespace headroom
