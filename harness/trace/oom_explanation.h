// Explains why a request could not be served, from the trace that ends with its failure: it finds
// the blocks in use at the place that needs the fewest bytes freed.
#pragma once

#include <string>
#include <vector>

#include "harness/trace/trace.h"

namespace headroom {

struct PinningBlock {
  std::uint32_t id = 0;
  Bytes bytes = 0;
  Role role = Role::activation;
  Phase phase = Phase::initialize;
  std::int32_t step = 0;
  std::string op;  // "" outside ops
};

struct OomExplanation {
  Bytes requested_bytes = 0;
  Bytes reserved_bytes = 0;  // in segments
  Bytes live_bytes = 0;      // in blocks in use
  Bytes free_bytes = 0;      // in segments, not in use
  Bytes largest_hole_bytes = 0;
  // The blocks with the fewest total bytes whose release would let the request fit into one
  // segment, largest first. Empty when no segment is as large as the request.
  std::vector<PinningBlock> pins;
  Bytes pinned_bytes = 0;  // sum of the bytes of pins
};

// Throws Error when the last event of `trace` is not an oom.
OomExplanation explain_oom(const Trace& trace);

}  // namespace headroom
