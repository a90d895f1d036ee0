// Work on one stream that waits for work on another. For what copies beside the kernels.
#pragma once

#include "harness/device/cuda/module/check.h"

namespace headroom::cuda {

using Event = Owned<CUevent_st, cudaEventDestroy>;

inline Event make_event() {
  return make_owned<cudaEventDestroy>(cudaEventCreateWithFlags, "to create an event",
                                      unsigned{cudaEventDisableTiming});
}

inline void wait(cudaStream_t stream, cudaEvent_t event) {
  require_success(cudaStreamWaitEvent(stream, event, cudaEventWaitDefault), "a stream to wait");
}

// What `later` is given from now on waits for all that `earlier` was given so far; `between` is
// recorded anew.
inline void wait_for_all(cudaStream_t later, cudaStream_t earlier, const Event& between) {
  require_success(cudaEventRecord(between.get(), earlier), "an event");
  wait(later, between.get());
}

}  // namespace headroom::cuda
