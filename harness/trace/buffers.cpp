#include "harness/trace/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace headroom {
namespace {

// The start or end of a piece, ordered by time. At equal times, ends come first.
struct Moment {
  std::int64_t time;
  bool begins;
  std::size_t buffer;
  Bytes begin, end;  // of the buffer's own bytes
};

std::vector<Moment> moments_of(const std::vector<PlanBuffer>& buffers) {
  std::vector<Moment> moments;
  moments.reserve(2 * buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    for_each_piece(buffers[i], [&](const PlanPiece& piece) {
      moments.push_back({piece.lower, true, i, piece.begin, piece.end});
      moments.push_back({piece.upper, false, i, piece.begin, piece.end});
    });
  }
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
    return std::pair(a.time, a.begins) < std::pair(b.time, b.begins);
  });
  return moments;
}

}  // namespace

std::vector<PlanBuffer> buffers_of(const RequestList& list, Bytes alignment) {
  const auto end = static_cast<std::int64_t>(list.requests.size());
  std::vector<PlanBuffer> buffers(list.blocks);
  for (std::size_t i = 0; i < list.requests.size(); ++i) {
    const Request& request = list.requests[i];
    const auto time = static_cast<std::int64_t>(i);
    PlanBuffer& buffer = buffers[request.block];
    if (request.kind == Request::Kind::alloc)
      buffer = {.lower = time,
                .upper = end,
                .size = align_up(request.bytes, alignment),
                .alignment = alignment};
    else
      buffer.upper = time;
  }
  return buffers;
}

Bytes peak_live_bytes(const std::vector<PlanBuffer>& buffers) {
  Bytes live = 0;
  Bytes peak = 0;
  for (const Moment& moment : moments_of(buffers)) {
    const Bytes bytes = moment.end - moment.begin;
    live = moment.begins ? live + bytes : live - bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

Bytes least_bytes(const std::vector<PlanBuffer>& buffers) {
  Bytes least = peak_live_bytes(buffers);
  for (const PlanBuffer& buffer : buffers)
    if (buffer.needs_room()) least = std::max(least, buffer.offset.value_or(0) + buffer.size);
  return least;
}

Bytes makespan(const std::vector<PlanBuffer>& buffers, const Offsets& offsets) {
  Bytes highest = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].needs_room()) highest = std::max(highest, offsets[i] + buffers[i].size);
  return highest;
}

std::vector<std::string> plan_violations(const std::vector<PlanBuffer>& buffers,
                                         const Offsets& offsets, Bytes capacity,
                                         std::size_t limit) {
  std::vector<std::string> found;
  const auto say = [&](std::string text) {
    if (found.size() < limit) found.push_back(std::move(text));
  };
  if (offsets.size() != buffers.size()) {
    say(fmt::format("{} offsets for {} buffers", offsets.size(), buffers.size()));
    return found;
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].needs_room()) continue;
    if (buffers[i].offset && *buffers[i].offset != offsets[i])
      say(fmt::format("buffer {} at {} has to be at {}", i, offsets[i], *buffers[i].offset));
    if (offsets[i] % buffers[i].alignment != 0)
      say(fmt::format("buffer {} at {} is not aligned to {}", i, offsets[i], buffers[i].alignment));
    if (offsets[i] + buffers[i].size < offsets[i] || offsets[i] + buffers[i].size > capacity)
      say(fmt::format("buffer {} at {} passes the capacity of {}", i, offsets[i], capacity));
  }
  struct InUse {
    std::size_t buffer;
    Bytes end;
  };
  std::map<Bytes, InUse> in_use;  // by begin; disjoint until a violation is found
  for (const auto& [time, begins, i, from, to] : moments_of(buffers)) {
    const Bytes begin = offsets[i] + from;
    const Bytes end = offsets[i] + to;
    if (!begins) {
      const auto at = in_use.find(begin);
      if (at != in_use.end() && at->second.buffer == i) in_use.erase(at);
      continue;
    }
    const auto next = in_use.lower_bound(begin);
    if (next != in_use.end() && next->first < end)
      say(fmt::format("buffers {} and {} overlap at time {}", i, next->second.buffer, time));
    if (next != in_use.begin() && std::prev(next)->second.end > begin)
      say(fmt::format("buffers {} and {} overlap at time {}", i, std::prev(next)->second.buffer,
                      time));
    in_use[begin] = {i, end};
  }
  return found;
}

std::vector<std::string> fixed_violations(const std::vector<PlanBuffer>& buffers) {
  std::vector<PlanBuffer> fixed = buffers;  // buffers without a fixed offset get size 0
  Offsets offsets(buffers.size(), 0);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].offset)
      offsets[i] = *buffers[i].offset;
    else
      fixed[i] = {};
  }
  return plan_violations(fixed, offsets, std::numeric_limits<Bytes>::max());
}

}  // namespace headroom
