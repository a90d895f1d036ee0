#include "harness/cli/text/replay/foresight.h"

#include <fmt/format.h>

#include <utility>

#include "harness/base/duration.h"
#include "harness/base/error.h"
#include "harness/memory/allocator.h"
#include "harness/planning/search.h"

namespace headroom {

PlanningProblem planning_problem(const History& history, const RequestList& list,
                                 const std::filesystem::path& file) {
  if (!history.placement)
    return {.buffers = buffers_of(list, kBlockAlignment),
            .alignment = kBlockAlignment,
            .least = list.peak_live_bytes};
  try {
    std::vector<PlanBuffer> buffers = buffers_of(history.trace, *history.placement);
    if (const auto wrong = fixed_violations(buffers); !wrong.empty())
      throw InputError(fmt::format(
          "what has a fixed offset cannot lie there (buffers in order of time, from 0): {}",
          wrong.front()));
    const Bytes least = least_bytes(buffers);
    return {.buffers = std::move(buffers), .alignment = 1, .least = least};
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

Foresight look_ahead(const PlanningProblem& problem, Bytes capacity,
                     std::chrono::milliseconds time) {
  constexpr int kPatience = 10;
  const auto begin = Clock::now();
  Offsets plan = plan_low(problem.buffers, begin + time);
  Foresight result;
  if (makespan(problem.buffers, plan) <= capacity) {
    result.fit = Foresight::Fit::yes;
  } else if (problem.least > capacity) {
    result.fit = Foresight::Fit::no;
  } else if (problem.buffers.size() <= kMostToSearch) {
    PlanSearch search = search_plan(problem.buffers, capacity, Clock::now() + kPatience * time);
    if (search.outcome == PlanSearch::Outcome::found) {
      result.fit = Foresight::Fit::yes;
      plan = std::move(search.offsets);
    } else if (search.outcome == PlanSearch::Outcome::infeasible) {
      result.fit = Foresight::Fit::no;
    }
  }
  result.bytes = makespan(problem.buffers, plan);
  result.seconds = seconds_since(begin);
  if (const auto wrong = plan_violations(problem.buffers, plan, result.bytes); !wrong.empty())
    throw Error("the plan is not sound: " + wrong.front());
  return result;
}

}  // namespace headroom
