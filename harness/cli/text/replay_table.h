// The table of headroom replay --all: every strategy with its figures, for people and for programs.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/text/foresight.h"
#include "harness/whatif/replay.h"
#include "harness/whatif/viable_capacity.h"

namespace headroom {

// One strategy's row of the table.
struct ReplayRow {
  Spec spec;
  std::string refused;  // why the strategy cannot be built on this capacity; or ""
  ReplayOutcome outcome;
  std::optional<double> ns_per_operation;  // over allocations and frees; absent after a failure
  ViableCapacity viable;
};

nlohmann::ordered_json to_json(const ReplayRow& row);
void print_replay_table(const RequestList& list, const Trace& trace,
                        const std::filesystem::path& file, const ReplayDevice& device,
                        const std::vector<ReplayRow>& rows, const PlanningProblem& problem,
                        const Foresight& foresight);

}  // namespace headroom
