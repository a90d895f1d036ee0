// What a Trace asked for, without how it was served: the input of replay and of planning.
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
  std::uint8_t stream = 0;  // that the block is for, or that freed it
  std::uint32_t block = 0;  // 0, 1, 2, … in order of allocation; a free carries its alloc's
  std::uint32_t op = kNoOp;
  std::int32_t step = 0;
  Bytes bytes = 0;
};

struct RequestList {
  std::vector<Request> requests;
  std::vector<std::string> op_names;
  std::uint32_t blocks = 0;
  std::uint32_t streams = 0;  // that blocks are for
  Bytes peak_live_bytes = 0;  // Σ bytes asked for at their highest: no allocator needs less
};

// A request that was refused is asked for again and given back at once: the trace cannot say how
// long it would have lived. Throws InputError for a block that is freed but not live.
RequestList requests_of(const Trace& trace);

// peak_live_bytes by role, at the moment they were first that high.
std::array<Bytes, kRoleCount> live_bytes_at_peak(const RequestList& list);

}  // namespace headroom
