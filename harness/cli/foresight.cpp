#include "harness/cli/foresight.h"

#include <fmt/format.h>

#include "harness/base/error.h"
#include "harness/memory/allocator.h"
#include "harness/memory/planning/search.h"

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

Foresight look_ahead(const PlanningProblem& problem, std::chrono::seconds time) {
  const auto begin = std::chrono::steady_clock::now();
  const Offsets plan = plan_low(problem.buffers, begin + time);
  const Bytes bytes = makespan(problem.buffers, plan);
  if (const auto wrong = plan_violations(problem.buffers, plan, bytes); !wrong.empty())
    throw Error("the plan is not sound: " + wrong.front());
  return {
      .bytes = bytes,
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

}  // namespace headroom
