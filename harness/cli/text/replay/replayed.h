// A history that was replayed under several strategies, for people and for programs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/cli/text/replay/foresight.h"
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

// The objects that the references name must outlive this.
struct Replayed {
  const std::filesystem::path& file;
  const Trace& trace;
  const RequestList& list;
  const PlanningProblem& problem;
  ReplayDevice device;
  std::vector<ReplayRow> rows;
  Foresight foresight;
};

// Whether the strategy never serves to one stream a block that another stream freed.
bool keeps_streams_apart(const Spec& strategy);

void print_replay_table(const Replayed& replayed);
void print_replay_json(const Replayed& replayed);

}  // namespace headroom
