// Buffers with known lifetimes that a planner places, and the checks of a plan.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/trace/requests.h"

namespace headroom {

// A period of a buffer's life in which it uses only the bytes [begin, end), or none when begin =
// end.
struct PlanGap {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  Bytes begin = 0;
  Bytes end = 0;
};

// A buffer that is live in [lower, upper), in any unit of time.
struct PlanBuffer {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  Bytes size = 0;
  Bytes alignment = 1;
  std::vector<PlanGap> gaps = {};              // in order of time, disjoint, within the lifetime
  std::optional<Bytes> offset = std::nullopt;  // a required offset
  std::optional<Bytes> hint = std::nullopt;    // a suggested offset: advice to planners

  bool needs_room() const { return size > 0 && lower < upper; }
};

// A period in which a buffer uses the same range of its bytes, [begin, end).
struct PlanPiece {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  Bytes begin = 0;
  Bytes end = 0;
};

// Calls with(piece) for each piece, in order of time. No piece is empty.
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

// One offset per buffer, in the order of the buffers.
using Offsets = std::vector<Bytes>;

// The blocks of a list, with time counted in requests. Blocks that are never freed live to the end.
// Sizes are rounded up to `alignment`.
std::vector<PlanBuffer> buffers_of(const RequestList& list, Bytes alignment);

// The peak of the bytes in use at the same time.
Bytes peak_live_bytes(const std::vector<PlanBuffer>& buffers);

// A lower bound for every plan: the maximum of the peak of live bytes, the largest buffer and the
// highest end of a buffer with a fixed offset.
Bytes least_bytes(const std::vector<PlanBuffer>& buffers);

// The highest end of the buffers that need room, counting all their bytes.
Bytes makespan(const std::vector<PlanBuffer>& buffers, const Offsets& offsets);

// Descriptions of what is wrong with a plan, at most `limit` of them. Empty when bytes in use at
// the same time are disjoint, and all buffers are aligned, at their required offsets and within
// `capacity`. Shares no code with any planner.
std::vector<std::string> plan_violations(const std::vector<PlanBuffer>& buffers,
                                         const Offsets& offsets, Bytes capacity,
                                         std::size_t limit = 10);

// The same check for the buffers with a fixed offset only. If it finds a violation, no plan is
// valid.
std::vector<std::string> fixed_violations(const std::vector<PlanBuffer>& buffers);

}  // namespace headroom
