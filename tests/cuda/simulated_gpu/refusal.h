// Calls that the simulated GPU refuses because it is told to. Those of
// HEADROOM_SIMULATED_GPU_REFUSES: "n" is the n-th, counted over all that can be; "n+" that and all
// after it, when the GPU is lost with all that was given to its streams.
#pragma once

namespace headroom::simulated_gpu {

// Asked once by each call that can be refused, whatever it asks for.
bool is_refused();
bool is_lost();

}  // namespace headroom::simulated_gpu
