// What offloading did in a run: figures of a sample, by name.
#pragma once

#include <map>
#include <string>

#include "harness/training/trainer.h"

namespace headroom {

// offloaded_bytes_per_step: copied to memory of the host (and back); offload_peak_bytes: most that
// was there at a time; offload_reserved_bytes: what the host gave for it. Empty where nothing was
// offloaded.
std::map<std::string, double> offload_figures(const Trainer& trainer, int steps);

}  // namespace headroom
