// The configurations of a block take turns: their processes live at the same time, and one of them
// works while the others sleep. A period in which the machine is slow then affects all of them
// alike.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/plan/cell.h"

namespace headroom {

// A turn lasts at least about this long: caches are cold when it begins.
inline constexpr std::chrono::milliseconds kTurn{50};

// Number of steps in each turn, from the step time of the fastest configuration: at least 1, and at
// most a quarter of `measured_steps`, so that there are four rounds.
std::uint64_t steps_per_turn(std::chrono::nanoseconds step, int measured_steps);

// The order of the configurations in one round, in which each has one turn. Every second round
// mirrors the one before it (ABBA), so that a steady drift cancels; the order of the others is
// random.
std::vector<std::size_t> turn_order(std::uint64_t seed, std::size_t arms, std::size_t round);

// Why these cells cannot take turns, as one sentence without full stop; "" if they can.
std::string why_no_turns(const std::vector<const Cell*>& cells);

}  // namespace headroom
