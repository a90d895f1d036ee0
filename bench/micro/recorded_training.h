// Training recorded on meta, for benchmarks over traces.
#pragma once

#include <cstdint>

#include "harness/trace/trace.h"

namespace headroom {

// ResNet-50 at batch 8: one warm-up step, then `steps` steps. Traces of meta contain no times.
Trace record_resnet50(int steps, std::uint64_t seed);

}  // namespace headroom
