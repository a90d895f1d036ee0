#include "harness/trace/placement.h"

#include <fmt/format.h>

#include <bit>
#include <unordered_map>

#include "harness/base/error.h"

namespace headroom {
namespace {

// Offsets and their differences must fit a signed 64-bit integer.
constexpr Bytes kMostBytes = Bytes{1} << 62;

void check(const Placement& placement, const PlanBuffer& buffer) {
  const auto refuse = [&](const char* what) {
    throw InputError(fmt::format("placement of block {}: {}", placement.block, what));
  };
  if (buffer.alignment == 0) refuse("alignment 0");
  std::int64_t from = buffer.lower;
  for (const PlanGap& gap : buffer.gaps) {
    if (gap.lower < from || gap.upper < gap.lower || gap.upper > buffer.upper)
      refuse("its gaps are not in order within its life");
    if (gap.begin > gap.end || gap.end > buffer.size)
      refuse("a gap keeps bytes that the block does not have");
    from = gap.upper;
  }
}

// Whether all buffers could be stacked above the highest fixed one without integer overflow.
bool can_be_counted(const std::vector<PlanBuffer>& buffers) {
  Bytes total = 0;
  for (const PlanBuffer& buffer : buffers) {
    for (const Bytes bytes : {buffer.size, buffer.alignment, buffer.offset.value_or(0)}) {
      if (bytes > kMostBytes - total) return false;
      total += bytes;
    }
  }
  return true;
}

}  // namespace

std::vector<PlanBuffer> buffers_of(const Trace& trace, const std::vector<Placement>& placements) {
  std::unordered_map<std::uint32_t, std::size_t> buffer_of;  // by block
  std::vector<PlanBuffer> buffers;
  std::int64_t end = 0;
  for (const TraceEvent& event : trace.events) {
    const auto time = std::bit_cast<std::int64_t>(event.time_ns);
    end = std::max(end, time);
    if (event.kind == EventKind::alloc) {
      buffer_of[event.id] = buffers.size();
      buffers.push_back({.lower = time,
                         .upper = std::numeric_limits<std::int64_t>::max(),
                         .size = event.requested});
    } else if (event.kind == EventKind::free && buffer_of.contains(event.id)) {
      buffers[buffer_of.at(event.id)].upper = time;
    }
  }
  for (PlanBuffer& buffer : buffers) buffer.upper = std::min(buffer.upper, end);
  for (const Placement& placement : placements) {
    const auto found = buffer_of.find(placement.block);
    if (found == buffer_of.end())
      throw InputError(
          fmt::format("placement of block {}: there is no such block", placement.block));
    PlanBuffer& buffer = buffers[found->second];
    buffer.alignment = placement.asked.alignment;
    buffer.offset = placement.asked.offset;
    buffer.hint = placement.asked.hint;
    buffer.gaps = placement.asked.gaps;
    check(placement, buffer);
  }
  if (!can_be_counted(buffers)) throw InputError("asks for more bytes than can be planned");
  return buffers;
}

}  // namespace headroom
