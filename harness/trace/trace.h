// The data structure shared by all parts: an ordered list of allocation events. Training on any
// device produces one; replay, planning, validation, timelines and exports are functions over it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/units.h"
#include "harness/program/op.h"

namespace headroom {

// Adjacent mapped pages of one reservation (their id) form one segment, and blocks may span them.
enum class EventKind : std::uint8_t {
  alloc,
  free,
  segment_alloc,
  segment_free,
  oom,
  segment_map,
  segment_unmap
};
inline constexpr int kEventKindCount = 7;
std::string_view to_string(EventKind kind);

struct TraceEvent {
  EventKind kind = EventKind::alloc;
  Role role = Role::activation;
  Phase phase = Phase::initialize;
  std::uint8_t stream = 0;
  std::uint32_t id = 0;       // block id, or segment id; a free carries the id of its alloc
  std::uint32_t op = 0;       // index into the step's lowered Program; kNoOp outside ops
  std::int32_t step = 0;      // 0 = before the first step, then 1, 2, …
  Bytes requested = 0;        // bytes asked for; for segments, their size
  Bytes size = 0;             // bytes of the block (≥ requested) or charged for the segment
  Address address = 0;        // logical
  std::uint64_t time_ns = 0;  // since the recorder was created; start of the op of the event
};
inline constexpr std::uint32_t kNoOp = ~std::uint32_t{0};

struct TraceHeader {
  std::string device;     // "host(capacity=…)", "meta(card=v100-16gb)"
  std::string rules;      // full identity of the lowering rules
  std::string allocator;  // canonical spec
  std::string workload;
  Bytes capacity_bytes = 0;  // 0: unknown
  Bytes granule_bytes = 0;   // 0: unknown
};

struct Trace {
  TraceHeader header;
  std::vector<TraceEvent> events;
  std::vector<std::string> op_names;  // of the training Program, by op index
};

// Describes the first difference of two event lists; "" when they are equal. Times are not
// compared: everything else must be the same on every device under the same rules.
std::string first_difference(const Trace& a, const Trace& b);

}  // namespace headroom
