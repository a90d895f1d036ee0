// Makes the simulated GPU refuse calls as HEADROOM_SIMULATED_GPU_REFUSES says: "n" refuses the n-th
// of the calls that can be refused; "n+" refuses it and all later ones, as when the GPU is lost
// with all work queued on its streams.
//
// HEADROOM_SIMULATED_GPU_LACKS names, separated by commas, what its libraries cannot do.
#pragma once

#include <string_view>

namespace headroom::simulated_gpu {

// Every call that can be refused asks this exactly once.
bool is_refused();
bool is_lost();
bool lacks(std::string_view what);

}  // namespace headroom::simulated_gpu
