// Events that order the work of two streams and measure nothing.
#pragma once

#include "harness/device/cuda/module/check.h"

namespace headroom::cuda {

using Event = Owned<CUevent_st, cudaEventDestroy>;

inline Event make_event() {
  return make_owned<cudaEventDestroy>(cudaEventCreateWithFlags, "to create an event",
                                      unsigned{cudaEventDisableTiming});
}

// What `after` is given from now on waits for all that `before` was given so far.
inline void order(cudaStream_t before, cudaStream_t after, cudaEvent_t event) {
  require_success(cudaEventRecord(event, before), "an event");
  require_success(cudaStreamWaitEvent(after, event, cudaEventWaitDefault), "a stream to wait");
}

}  // namespace headroom::cuda
