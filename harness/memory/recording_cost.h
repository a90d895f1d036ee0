// What it took to record a run's allocations, measured where they were recorded.
#pragma once

#include "harness/results/sample.h"
#include "harness/trace/trace.h"

namespace headroom {

// Times the recorder here and now and counts what `trace` holds; steady steps are those after
// `warmup_steps`, up to `steps`.
RecordingCost recording_cost(const Trace& trace, int warmup_steps, int steps);

}  // namespace headroom
