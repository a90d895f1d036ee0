// What a planner finds who knows a whole history ahead.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "harness/cli/history.h"
#include "harness/trace/buffers.h"
#include "harness/trace/requests.h"

namespace headroom {

struct PlanningProblem {
  std::vector<PlanBuffer> buffers;
  Bytes alignment = 1;  // of those for which nothing is asked
  Bytes least = 0;      // no plan needs less
};

// Blocks as strategies serve them; where the history is a planning problem, as that asks for them.
// Throws InputError naming the file where no plan can do so.
PlanningProblem planning_problem(const History& history, const RequestList& list,
                                 const std::filesystem::path& file);

struct Foresight {
  enum class Fit : std::uint8_t { yes, no, unknown };
  Bytes bytes = 0;
  double seconds = 0;
  Fit fit = Fit::unknown;  // into the capacity; no: it is proven that no plan does
};

// The lowest plan found in that time, validated. While none fits into a capacity that one might fit
// into, the search for it goes on up to ten times as long.
Foresight look_ahead(const PlanningProblem& problem, Bytes capacity,
                     std::chrono::milliseconds time);

}  // namespace headroom
