// The cheapest way to make parts of a chain of modules again within a budget of bytes: a dynamic
// programme over the chain. Knows no Program. For the files of this folder.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "harness/base/units.h"

namespace headroom::checkpointing {

// Of what is made again: floating-point operations first, and where they are the same (they count
// products only) the bytes that the ops read and write.
struct Work {
  double flops = 0;
  Bytes touched = 0;

  Work& operator+=(const Work& other);
  auto operator<=>(const Work&) const = default;
};

// What becomes of modules [first, end): kept as it is made (one module), or made again in one go.
struct Segment {
  std::size_t first = 0, end = 0;
  bool again = false;

  Bytes kept = 0;  // held from the forward pass on
  Bytes inside =
      0;  // held beside that, and beside all kept before, at its highest while made again
  Work work = {};
};

struct Chain {
  std::size_t modules = 0;
  std::vector<Segment> segments;  // every choice there is
};

// One segment after another from the first module to the last. At no time more than `budget` bytes
// are held, and no such choice makes less again. Absent where there is none.
std::optional<std::vector<Segment>> cheapest(const Chain& chain, Bytes budget);

// The most that such a choice holds at a time.
Bytes highest(const std::vector<Segment>& choice);

// The smallest budget that has a choice.
Bytes smallest_budget(const Chain& chain);

}  // namespace headroom::checkpointing
