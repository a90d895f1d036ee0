// Effects of offloading on training, as named figures of a sample.
#pragma once

#include <map>
#include <string>

#include "harness/training/trainer.h"

namespace headroom {

// offloaded_bytes_per_step: bytes copied to host memory (and back); offload_peak_bytes: their peak;
// offload_reserved_bytes: host memory reserved for them. Empty if nothing was offloaded.
std::map<std::string, double> offload_figures(const Trainer& trainer, int steps);

}  // namespace headroom
