// Offline planning by search: finds a plan within a capacity where one exists and time allows, also
// where no order of greedy placement does.
//
// Method: depth-first over canonical plans, as MiniMalloc does it (Moffitt 2023, "MiniMalloc: A
// Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"): buffers are placed in
// order of their offsets, each as low as those before it let it; a branch ends when some moment's
// unplaced buffers no longer fit above what lies there; parts that no longer share a moment are
// solved apart. Here several static orders take turns with growing budgets, later ones shuffled.
#pragma once

#include <chrono>
#include <cstdint>

#include "harness/memory/planning/buffers.h"

namespace headroom {

struct PlanSearch {
  enum class Outcome : std::uint8_t { found, infeasible, timed_out };
  Outcome outcome = Outcome::timed_out;
  Offsets offsets;          // where found
  std::uint64_t nodes = 0;  // placements tried
};

// Gives up at `deadline`. The same input gives the same plan unless it times out.
PlanSearch search_plan(const std::vector<PlanBuffer>& buffers, Bytes capacity,
                       std::chrono::steady_clock::time_point deadline);

// The lowest plan found until `deadline`: greedy first, then ever lower capacities by search.
Offsets plan_low(const std::vector<PlanBuffer>& buffers,
                 std::chrono::steady_clock::time_point deadline);

}  // namespace headroom
