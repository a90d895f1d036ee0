#include "harness/memory/planning/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace headroom {
namespace {

// Buffers' beginnings and ends in order of time; at one time ends come first.
struct Moment {
  std::int64_t time;
  bool begins;
  std::size_t buffer;
};

std::vector<Moment> moments_of(const std::vector<PlanBuffer>& buffers) {
  std::vector<Moment> moments;
  moments.reserve(2 * buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].lower >= buffers[i].upper) continue;
    moments.push_back({buffers[i].lower, true, i});
    moments.push_back({buffers[i].upper, false, i});
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
    if (moment.begins)
      live += buffers[moment.buffer].size;
    else
      live -= buffers[moment.buffer].size;
    peak = std::max(peak, live);
  }
  return peak;
}

Bytes makespan(const std::vector<PlanBuffer>& buffers, const Offsets& offsets) {
  Bytes highest = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    highest = std::max(highest, offsets[i] + buffers[i].size);
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
    if (offsets[i] % buffers[i].alignment != 0)
      say(fmt::format("buffer {} at {} is not aligned to {}", i, offsets[i], buffers[i].alignment));
    if (offsets[i] + buffers[i].size < offsets[i] || offsets[i] + buffers[i].size > capacity)
      say(fmt::format("buffer {} at {} passes the capacity of {}", i, offsets[i], capacity));
  }
  std::map<Bytes, std::size_t> alive;  // by offset; disjoint as long as nothing was found
  for (const auto& [time, begins, i] : moments_of(buffers)) {
    if (buffers[i].size == 0) continue;
    if (!begins) {
      const auto at = alive.find(offsets[i]);
      if (at != alive.end() && at->second == i) alive.erase(at);
      continue;
    }
    const auto next = alive.lower_bound(offsets[i]);
    if (next != alive.end() && next->first < offsets[i] + buffers[i].size)
      say(fmt::format("buffers {} and {} overlap at time {}", i, next->second, time));
    if (next != alive.begin()) {
      const auto [offset, other] = *std::prev(next);
      if (offset + buffers[other].size > offsets[i])
        say(fmt::format("buffers {} and {} overlap at time {}", i, other, time));
    }
    alive[offsets[i]] = i;
  }
  return found;
}

}  // namespace headroom
