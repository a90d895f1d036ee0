#include "harness/trace/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <unordered_map>

#include "harness/base/error.h"

namespace headroom {

namespace {

// Limit that keeps such sums within a signed 64-bit integer even after each block is rounded up.
constexpr Bytes kMostLiveBytes = Bytes{1} << 60;

}  // namespace

RequestList requests_of(const Trace& trace) {
  struct Live {
    std::uint32_t block;
    Bytes bytes;
  };
  RequestList list;
  list.op_names = trace.op_names;
  std::bitset<256> streams;
  std::unordered_map<std::uint32_t, Live> live;  // by the trace's own id
  Bytes live_bytes = 0;
  const auto ask = [&](Request::Kind kind, const TraceEvent& event, std::uint32_t block) {
    list.requests.push_back({.kind = kind,
                             .role = event.role,
                             .phase = event.phase,
                             .stream = event.stream,
                             .block = block,
                             .op = event.op,
                             .step = event.step,
                             .bytes = event.requested});
  };
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.kind == EventKind::alloc || event.kind == EventKind::oom) {
      if (event.requested > kMostLiveBytes - live_bytes)
        throw InputError(fmt::format("event {}: more bytes are live than any device has", i));
      const std::uint32_t block = list.blocks++;
      streams.set(event.stream);
      ask(Request::Kind::alloc, event, block);
      live_bytes += event.requested;
      list.peak_live_bytes = std::max(list.peak_live_bytes, live_bytes);
      if (event.kind == EventKind::oom) {
        ask(Request::Kind::free, event, block);
        live_bytes -= event.requested;
      } else if (!live.emplace(event.id, Live{block, event.requested}).second) {
        throw InputError(
            fmt::format("event {}: block {} is allocated while it is live", i, event.id));
      }
    } else if (event.kind == EventKind::free) {
      const auto found = live.find(event.id);
      if (found == live.end())
        throw InputError(fmt::format("event {}: block {} is freed but not live", i, event.id));
      ask(Request::Kind::free, event, found->second.block);
      live_bytes -= found->second.bytes;
      live.erase(found);
    }
  }
  list.streams = static_cast<std::uint32_t>(streams.count());
  return list;
}

std::array<Bytes, kRoleCount> live_bytes_at_peak(const RequestList& list) {
  std::array<Bytes, kRoleCount> by_role{};
  std::vector<Bytes> bytes(list.blocks);
  Bytes live = 0;
  for (const Request& request : list.requests) {
    if (live == list.peak_live_bytes) break;
    if (request.kind == Request::Kind::alloc) {
      bytes[request.block] = request.bytes;
      by_role.at(static_cast<std::size_t>(request.role)) += request.bytes;
      live += request.bytes;
    } else {
      by_role.at(static_cast<std::size_t>(request.role)) -= bytes[request.block];
      live -= bytes[request.block];
    }
  }
  return by_role;
}

}  // namespace headroom
