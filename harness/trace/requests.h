// The requests of a Trace without their placement: the input of replay and of planning.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "harness/trace/trace.h"

namespace headroom {

struct Request {
  enum class Kind : std::uint8_t { alloc, free };
  Kind kind = Kind::alloc;
  Role role = Role::activation;
  Phase phase = Phase::initialize;
  std::uint8_t stream = 0;  // stream that the block is for, or that freed it
  std::uint32_t block = 0;  // 0, 1, 2, … in order of allocation; a free carries its alloc's
  std::uint32_t op = kNoOp;
  std::int32_t step = 0;
  Bytes bytes = 0;
};

struct RequestList {
  std::vector<Request> requests;
  std::vector<std::string> op_names;
  std::uint32_t blocks = 0;
  std::uint32_t streams = 0;  // number of streams with blocks
  Bytes peak_live_bytes = 0;  // peak of the live requested bytes: a lower bound for every allocator
};

// A request that failed is repeated as an allocation that is freed at once, because the trace does
// not say how long the block would have lived. Throws InputError for a free of a block that is not
// live.
RequestList requests_of(const Trace& trace);

// The split of peak_live_bytes by role, when the peak was first reached.
std::array<Bytes, kRoleCount> live_bytes_at_peak(const RequestList& list);

}  // namespace headroom
