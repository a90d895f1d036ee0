// Makes work on one stream wait for work on another; used for copies beside the kernels.
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

// Makes all work queued on `later` from now on wait for all work queued on `earlier` so far.
// Records `between` anew.
inline void wait_for_all(cudaStream_t later, cudaStream_t earlier, const Event& between) {
  require_success(cudaEventRecord(between.get(), earlier), "an event");
  wait(later, between.get());
}

}  // namespace headroom::cuda
