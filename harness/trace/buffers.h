// Buffers whose lifetimes are known before any of them is placed, and what makes a plan sound.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/trace/requests.h"

namespace headroom {

// A time in a buffer's life when it uses only [begin, end) of its bytes, or none where these meet.
struct PlanGap {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  Bytes begin = 0;
  Bytes end = 0;
};

// Lives in [lower, upper), in any unit of time.
struct PlanBuffer {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  Bytes size = 0;
  Bytes alignment = 1;
  std::vector<PlanGap> gaps = {};              // in order of time, disjoint, within the life
  std::optional<Bytes> offset = std::nullopt;  // where it has to be
  std::optional<Bytes> hint = std::nullopt;    // where it might go well: advice to planners

  bool needs_room() const { return size > 0 && lower < upper; }
};

// A time in which a buffer uses the same of its bytes, [begin, end).
struct PlanPiece {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  Bytes begin = 0;
  Bytes end = 0;
};

// Calls with(piece) for each, in order of time. None is empty.
template <typename Do>
void for_each_piece(const PlanBuffer& buffer, const Do& with) {
  const auto one = [&](std::int64_t lower, std::int64_t upper, Bytes begin, Bytes end) {
    if (lower < upper && begin < end) with(PlanPiece{lower, upper, begin, end});
  };
  std::int64_t from = buffer.lower;
  for (const PlanGap& gap : buffer.gaps) {
    one(from, gap.lower, 0, buffer.size);
    one(gap.lower, gap.upper, gap.begin, gap.end);
    from = gap.upper;
  }
  one(from, buffer.upper, 0, buffer.size);
}

// One offset per buffer, in the buffers' order.
using Offsets = std::vector<Bytes>;

// The blocks of a list, time counted in requests; what is never freed lives to the end. Sizes are
// rounded up to `alignment`.
std::vector<PlanBuffer> buffers_of(const RequestList& list, Bytes alignment);

// Σ bytes in use at once, at their highest.
Bytes peak_live_bytes(const std::vector<PlanBuffer>& buffers);

// No plan needs less: that, the largest buffer, and the end of the highest that has a fixed place.
Bytes least_bytes(const std::vector<PlanBuffer>& buffers);

// The end of the highest buffer that needs room; all its bytes count.
Bytes makespan(const std::vector<PlanBuffer>& buffers, const Offsets& offsets);

// Everything wrong with a plan, in words, at most `limit` of them; empty when bytes in use at once
// are disjoint, and buffers aligned, where they have to be, and end within `capacity`. Shares no
// code with any planner.
std::vector<std::string> plan_violations(const std::vector<PlanBuffer>& buffers,
                                         const Offsets& offsets, Bytes capacity,
                                         std::size_t limit = 10);

// The same of the buffers that have a fixed place: where there are any, no plan is sound.
std::vector<std::string> fixed_violations(const std::vector<PlanBuffer>& buffers);

}  // namespace headroom
