// Offline planning by search. It finds a plan within a capacity if one exists and time allows, even
// where greedy placement fails in every order.
//
// Method: depth-first search over plans in which no buffer could be pushed down. Buffers are placed
// one at a time, each on top of those below it. What a branch implies in every section prunes it
// (partial_plan.h). Parts that no longer share a moment are solved separately, as in MiniMalloc
// (Moffitt 2023, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
// Learning"). Unlike MiniMalloc, each decision is binary: a buffer is either placed at its lowest
// offset or goes above it, and the next buffer comes from the section with the fewest
// continuations. A buffer with a fixed place is next when nothing else has room below it. Ties go
// to the buffer that most often could not be placed in all searches so far (Boussemart et al. 2004,
// "Boosting Systematic Search by Weighting Constraints"), then to one of several static orders,
// which take turns with growing budgets; later orders are shuffled.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "harness/trace/buffers.h"

namespace headroom {

struct PlanSearch {
  enum class Outcome : std::uint8_t { found, infeasible, timed_out };
  Outcome outcome = Outcome::timed_out;
  Offsets offsets;          // set if a plan was found
  std::uint64_t nodes = 0;  // placements tried
};

// Search is not tried with more buffers than this, because its bookkeeping per section would not
// fit into memory. Greedy plans are improved instead.
inline constexpr std::size_t kMostToSearch = 5000;

// Searches for a plan of at most `capacity` bytes and gives up at `deadline`. Buffers with gaps
// that keep some bytes are planned by shaped_search.h. The same input gives the same plan unless it
// times out.
PlanSearch search_plan(const std::vector<PlanBuffer>& buffers, Bytes capacity,
                       std::chrono::steady_clock::time_point deadline);

// Returns the lowest plan found by `deadline`: a greedy one first, then searches at lower
// capacities or, for more than kMostToSearch buffers, greedy ones in other orders.
Offsets plan_low(const std::vector<PlanBuffer>& buffers,
                 std::chrono::steady_clock::time_point deadline);

}  // namespace headroom
