// The cost of recording allocations, measured in the process that recorded them.
#pragma once

#include <cstdint>

#include "harness/trace/trace.h"

namespace headroom {

struct RecordingCost {
  double ns_per_event = 0;          // 0 if not measured
  std::uint64_t events = 0;         // events in the whole trace
  std::uint64_t steady_events = 0;  // events in the steps after warm-up
  Bytes bytes = 0;                  // memory of the recorder, allocated before the first step
};

// Times the recorder now and counts the events of `trace`. Steady steps are those after
// `warmup_steps`, up to and including `steps`.
RecordingCost recording_cost(const Trace& trace, int warmup_steps, int steps);

}  // namespace headroom
