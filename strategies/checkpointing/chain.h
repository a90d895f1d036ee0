// Chooses the cheapest recomputation of parts of a chain of modules within a budget of bytes, by
// dynamic programming over the chain. Independent of Programs. For the files of this folder.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "harness/base/units.h"

namespace headroom::checkpointing {

// The work of recomputation: compared by floating-point operations and, when they are equal (they
// count products only), by the bytes that the ops read and write.
struct Work {
  double flops = 0;
  Bytes touched = 0;

  Work& operator+=(const Work& other);
  auto operator<=>(const Work&) const = default;
};

// The treatment of modules [first, end): kept when made (one module), or recomputed together.
struct Segment {
  std::size_t first = 0, end = 0;
  bool again = false;

  Bytes kept = 0;    // held from the forward pass on
  Bytes inside = 0;  // peak held during recomputation, besides that and everything kept before
  Work work = {};
};

struct Chain {
  std::size_t modules = 0;
  std::vector<Segment> segments;  // all possible segments
};

// Returns consecutive segments from the first module to the last that never hold more than `budget`
// bytes, with the least work. Absent if there are none.
std::optional<std::vector<Segment>> cheapest(const Chain& chain, Bytes budget);

// The peak bytes held by such a choice.
Bytes highest(const std::vector<Segment>& choice);

// The smallest budget for which a choice exists.
Bytes smallest_budget(const Chain& chain);

}  // namespace headroom::checkpointing
