// The result of a planner that knows the whole history in advance.
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
  Bytes alignment = 1;  // for buffers without their own
  Bytes least = 0;      // lower bound of every plan
};

// The blocks with the sizes that strategies serve or, where the history is a planning problem, with
// the sizes of that problem. Throws InputError naming the file when no plan is possible.
PlanningProblem planning_problem(const History& history, const RequestList& list,
                                 const std::filesystem::path& file);

struct Foresight {
  enum class Fit : std::uint8_t { yes, no, unknown };
  Bytes bytes = 0;
  double seconds = 0;
  Fit fit = Fit::unknown;  // into the capacity; "no" is proven for every plan
};

// Returns the lowest plan found in the given time, validated. When that plan exceeds the capacity
// but another may fit, a search for one that fits takes up to ten times as long.
Foresight look_ahead(const PlanningProblem& problem, Bytes capacity,
                     std::chrono::milliseconds time);

}  // namespace headroom
