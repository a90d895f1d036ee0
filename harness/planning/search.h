// Offline planning by search: finds a plan within a capacity where one exists and time allows, also
// where no order of greedy placement does.
//
// Method: depth-first over plans in which nothing could be pushed down, a buffer at a time on top
// of those below it; what a branch implies in every section prunes it (partial_plan.h), and parts
// that no longer share a moment are solved apart, as in MiniMalloc (Moffitt 2023, "MiniMalloc: A
// Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"). Unlike there, a buffer
// stands where it can be placed or above, and the one asked about next is where the fewest ways to
// go on are left. What has a fixed place is next when nothing has room below it. Ties go to what
// was most often without room, in all searches so far (Boussemart et al. 2004, "Boosting Systematic
// Search by Weighting Constraints"), then by several static orders in turn with growing budgets,
// later ones shuffled.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "harness/trace/buffers.h"

namespace headroom {

struct PlanSearch {
  enum class Outcome : std::uint8_t { found, infeasible, timed_out };
  Outcome outcome = Outcome::timed_out;
  Offsets offsets;          // where found
  std::uint64_t nodes = 0;  // placements tried
};

// Beyond so many buffers what search keeps of every section would not fit into memory, and greedy
// plans are near the bound anyway.
inline constexpr std::size_t kMostToSearch = 5000;

// Gives up at `deadline`. Where gaps keep some bytes, by shaped_search.h. The same input gives the
// same plan unless it times out.
PlanSearch search_plan(const std::vector<PlanBuffer>& buffers, Bytes capacity,
                       std::chrono::steady_clock::time_point deadline);

// The lowest plan found until `deadline`: greedy first, then ever lower capacities by search.
Offsets plan_low(const std::vector<PlanBuffer>& buffers,
                 std::chrono::steady_clock::time_point deadline);

}  // namespace headroom
